## SPDX-License-Identifier: LGPL-2.1-or-later

EXTRA_DIST += %D%/ARCHITECTURE.md %D%/FORMAT.md
