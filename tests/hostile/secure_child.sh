# SPDX-License-Identifier: LGPL-2.1-or-later
# secure_child.sh - an ordinary user's shell starts a set-user-ID program; neither says a word
place=$(mktemp -d /tmp/secure_child.XXXXXX) || exit 1
trap 'rm -rf "$place"' EXIT
chmod 755 "$place"
cp "$HOSTILE_here/secure_child" "$place/child"
chown 65533 "$place/child"
chmod 4755 "$place/child"
setpriv --reuid=65534 --regid=65534 --clear-groups sh -c '"$0"/child; echo "status $?"' "$place"
