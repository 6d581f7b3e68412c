#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""
The Debian package: installed, upgraded, removed and purged in a chroot whose root is an overlay of this
machine's, in a mount namespace of its own. Nothing of it reaches the machine. Prints TAP.
"""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LEDGER = "var/log/nightclerk/a-tenant/call_ledger.jsonl"
STORE = "var/lib/nightclerk/a-tenant.db"
CONFIG = "etc/nightclerk/audit.json"
ENABLED = "etc/systemd/system/multi-user.target.wants/nightclerk.service"
# In place of what asks the service manager: it writes down what was asked. With --root=/ only links are made.
SPY = """#!/bin/sh
case " $* " in *" --root=/ "*) exec /usr/bin/real-systemctl "$@" ;; esac
echo "${0##*/} $*" >>/asked
"""
OF_OTHERS = ("/proc", "/sys", "/dev", "/usr/local", "/tmp", "/home", "/root")
failed = count = 0


def equal(name, got, want):
    global failed, count  # pylint: disable=global-statement
    count += 1
    failed += got != want
    print(f"{'ok' if got == want else 'not ok'} {count} - {name}", flush=True)
    if got != want:
        print(f"# got  {got!r}\n# want {want!r}")


def shell(command, *words):
    done = subprocess.run([*command, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{words}: {done.returncode}\n{done.stdout}")
    return done.stdout


class Machine:
    """An overlay of the machine's root: what is done in it is gone with the mount namespace."""

    def __init__(self, place):
        self.upper, self.root = place + "/upper", place + "/root"
        shell(["mount"], "-t", "tmpfs", "none", place)
        for folder in (self.upper, place + "/work", self.root):
            os.mkdir(folder)
        shell(["mount"], "-t", "overlay", "none", "-o", f"lowerdir=/,upperdir={self.upper},workdir={place}/work", self.root)
        shell(["mount"], "--bind", "/dev", self.root + "/dev")
        shell(["mount"], "-t", "proc", "none", self.root + "/proc")
        for folder in ("run", "tmp"):
            shell(["mount"], "-t", "tmpfs", "none", f"{self.root}/{folder}")
        os.makedirs(self.root + "/run/systemd/system")  # as if it were running
        shutil.copy2(self.path("usr/bin/systemctl"), self.path("usr/bin/real-systemctl"))
        for name in ("systemctl", "deb-systemd-invoke"):
            self.write("usr/bin/" + name, SPY, 0o755)

    def path(self, name):
        return os.path.join(self.root, name)

    def write(self, name, text, mode=0o644):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if os.path.lexists(path):
            os.unlink(path)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def dpkg(self, *words):
        shell(["chroot", self.root, "env", "DEBIAN_FRONTEND=noninteractive", "dpkg", "--force-confold", "--force-unsafe-io"], *words)

    def install(self, package):
        shutil.copy(package, self.path("tmp/nightclerk.deb"))
        self.dpkg("--install", "/tmp/nightclerk.deb")

    def asked(self):
        """What the service manager was asked for since the last time, but for reading its files again."""
        said = self.read("asked").splitlines() if os.path.exists(self.path("asked")) else []
        self.write("asked", "")
        return [line for line in said if not line.endswith("daemon-reload")]

    def ours(self):
        """Every path with our name, folders without what is in them."""
        found = []
        for folder, folders, names in os.walk(self.upper):
            inside = folder[len(self.upper):]
            folders[:] = [name for name in folders if not f"{inside}/{name}".startswith(OF_OTHERS)]
            found += [f"{inside}/{name}" for name in names + folders
                      if "nightclerk" in name and os.path.lexists(self.root + f"{inside}/{name}")]
        return sorted(found)

    def packaged(self):
        done = subprocess.run(["chroot", self.root, "dpkg", "--listfiles", "nightclerk"], stdout=subprocess.PIPE, text=True, check=True)
        return done.stdout.splitlines()

    def user(self):
        done = subprocess.run(["chroot", self.root, "getent", "passwd", "nightclerk"], stdout=subprocess.PIPE, text=True, check=False)
        return done.stdout.strip()


def build(place, version):
    shell([os.path.join(ROOT, "packaging/deb/build")], version, place)
    return glob.glob(f"{place}/nightclerk_{version}_*.deb")[0]


def look_at_control(package):
    fields = dict(re.findall(r"^([\w-]+): (.*)$", shell(["dpkg-deb"], "--info", package).replace("\n ", "\n"), re.M))
    equal("it depends on what it is linked with", {"libbpf1", "libc6", "libsqlite3-0", "adduser"}
          <= {name.split(" ")[0].replace("t64", "") for name in fields["Depends"].split(", ")}, True)
    owners = set(line.split()[1] for line in shell(["dpkg-deb"], "--contents", package).splitlines())
    equal("all of it is root's", owners, {"root/root"})


def install_it(machine, package, verb="start", changed=""):
    machine.install(package)
    account = machine.user().split(":")
    equal("the collector's account", (account[0], account[5], account[6]), ("nightclerk", "/var/lib/nightclerk", "/usr/sbin/nologin"))
    equal("and it is nobody's number", int(account[2]) != 0, True)
    equal("every file of the package is there", [path for path in machine.packaged() if not os.path.lexists(machine.root + path)], [])
    equal("dpkg finds it whole", shell(["chroot", machine.root, "dpkg"], "--verify", "nightclerk"), changed)
    equal("the program runs", shell(["chroot", machine.root, "nightclerk"], "--version"), "nightclerk 0.1.0\n")
    equal("it is enabled, and started", (os.path.lexists(machine.path(ENABLED)), machine.asked()),
          (True, [f"deb-systemd-invoke {verb} nightclerk.service"]))


def upgrade_it(machine, package):
    machine.write(LEDGER, "a line\n")
    machine.write(STORE, "a store\n")
    machine.write(CONFIG, '{"strict": true}\n')
    before = machine.user()
    machine.install(package)
    equal("an upgrade keeps ledgers, stores and what was configured",
          [machine.read(path) for path in (LEDGER, STORE, CONFIG)], ["a line\n", "a store\n", '{"strict": true}\n'])
    equal("and the account", machine.user(), before)
    equal("and restarts once", machine.asked(), ["deb-systemd-invoke restart nightclerk.service"])


def disable_it(machine, package):
    shell(["chroot", machine.root, "systemctl"], "--root=/", "disable", "nightclerk.service")
    machine.install(package)
    equal("what was disabled stays so", os.path.lexists(machine.path(ENABLED)), False)
    shell(["chroot", machine.root, "systemctl"], "--root=/", "enable", "nightclerk.service")
    machine.asked()


def remove_it(machine):
    machine.dpkg("--remove", "nightclerk")
    equal("a removal stops it first", machine.asked()[:1], ["deb-systemd-invoke stop nightclerk.service"])
    equal("and keeps what was written, and what was configured",
          [machine.read(path) for path in (LEDGER, STORE, CONFIG)], ["a line\n", "a store\n", '{"strict": true}\n'])
    equal("but no program, unit or page", [path for path in machine.ours() if path.startswith("/usr/")], [])


def purge_it(machine):
    machine.dpkg("--purge", "nightclerk")
    equal("a purge leaves nothing", machine.ours(), [])
    equal("but the account, whose number nobody else may get", machine.user().split(":")[0], "nightclerk")


def inside():
    with tempfile.TemporaryDirectory() as packages, tempfile.TemporaryDirectory() as place:
        first, second = build(packages, "0.1.0"), build(packages, "0.1.0+next")
        machine = Machine(place)
        try:
            look_at_control(first)
            install_it(machine, first)
            upgrade_it(machine, second)
            disable_it(machine, second)
            remove_it(machine)
            install_it(machine, first, "restart", f"??5?????? c /{CONFIG}\n")  # dpkg knows that it was there
            purge_it(machine)
        finally:
            shell(["umount"], "--recursive", place)
    print(f"1..{count}")
    return 1 if failed else 0


def main():
    if len(sys.argv) == 2:
        os.environ.pop("MAKEFLAGS", None)
        return inside()
    if os.geteuid() != 0:
        print("1..0 # SKIP a mount namespace needs root")
        return 0
    if not all(map(shutil.which, ("dpkg-deb", "dpkg-shlibdeps", "adduser", "deb-systemd-helper"))):
        print("1..0 # SKIP no Debian, or no dpkg-dev: run 'make deps' as root")
        return 0
    return subprocess.run(["unshare", "--mount", "--propagation", "private", sys.executable, __file__, "inside"],
                          check=False).returncode


sys.exit(main())
