# SPDX-License-Identifier: LGPL-2.1-or-later
# through_loader.sh - the loader and the C library as programs: what they run is tracked,
# what they only look at is looked at
program=$HOSTILE_builddir/fixtures/malloc_free
loader=$(LC_ALL=C readelf -l "$program" | sed -n 's/.*interpreter: \(.*\)\]/\1/p')
libc=$(ldd "$program" | awk '/libc\.so/ { print $3 }')

"$loader" "$program" || exit 1
"$loader" --list "$program" | grep -c 'libc\.so'
"$loader" --verify "$program" || exit 2
ldd "$program" | grep -c 'libc\.so'
"$libc" | head -n 1
