## SPDX-License-Identifier: LGPL-2.1-or-later
##
## Small models of protocols between programs, looked through state by state.  Each model is
## also run with steps in other orders, and has to find what is wrong with those.

test_scripts += %D%/model.test

EXTRA_DIST +=			\
	%D%/explore.py		\
	%D%/hold.py		\
	%D%/model.py		\
	%D%/park.py
