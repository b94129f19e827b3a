## SPDX-License-Identifier: LGPL-2.1-or-later
##
## Tests of the whole: each is a line in test_scripts.
