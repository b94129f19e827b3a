# SPDX-License-Identifier: LGPL-2.1-or-later
# odd_places.sh - a program whose path has what paths should not have, by that path, by a
# link to it, and by a script that names it as its interpreter
set -e
place="a b:c'd\"e
f;g\\h	(deleted)"
mkdir "$place"
cp "$HOSTILE_builddir/fixtures/malloc_free" "$place/program"
"./$place/program"
ln -s "$place/program" link
./link
cd "$place"
./program
printf '#!%s\n' "$HOSTILE_builddir/fixtures/malloc_free" >script
chmod +x script
PATH=.:$PATH
script
