#!/usr/bin/python3
"""sidingctl certs: the files that it makes, and those that it leaves alone."""

import pathlib
import shutil
import tempfile
import unittest

from case import Authority, CtlError, run


class Certs(unittest.TestCase):
    def setUp(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="siding-certs-"))
        self.addCleanup(shutil.rmtree, folder)
        self.authority = Authority(folder / "ca")

    def read(self, name):
        return (self.authority.dir / name).read_text()

    def test_keys_are_the_owners(self):
        self.authority.make("node", "n1")
        for key in self.authority.dir.glob("*.key"):
            self.assertEqual(key.stat().st_mode & 0o777, 0o600, key)
        self.assertEqual(self.authority.dir.stat().st_mode & 0o777, 0o700)

    def test_openssl_finds_them_good(self):
        made = [self.authority.make("node", "n1"), self.authority.make("user", "ada"), self.authority.make("controller", "head1")]
        for one, purpose in zip(made, ("sslclient", "sslclient", "sslserver")):
            done = run("openssl", "verify", "-x509_strict", "-purpose", purpose, "-CAfile", self.authority.ca, one["certificate"])
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_nothing_is_overwritten(self):
        self.authority.make("user", "ada")
        before = self.read("user-ada.key")
        with self.assertRaisesRegex(CtlError, "user-ada.pem is there already; --force replaces it"):
            self.authority.make("user", "ada")
        with self.assertRaisesRegex(CtlError, "ca.pem is there already"):
            self.authority.make("init", self.authority.dir)
        self.assertEqual(self.read("user-ada.key"), before)

    def test_force_makes_a_new_key(self):
        self.authority.make("user", "ada")
        before = self.read("user-ada.key")
        self.authority.make("user", "ada", "--force")
        self.assertNotEqual(self.read("user-ada.key"), before)

    def test_a_renewal_keeps_the_key(self):
        self.authority.make("user", "ada")
        key, certificate = self.read("user-ada.key"), self.read("user-ada.pem")
        self.authority.make("user", "ada", "--renew")
        self.assertEqual(self.read("user-ada.key"), key)
        self.assertNotEqual(self.read("user-ada.pem"), certificate)

    def test_there_must_be_something_to_renew(self):
        with self.assertRaisesRegex(CtlError, "user-ada.key"):
            self.authority.make("user", "ada", "--renew")

    def test_a_folder_without_an_authority_is_named(self):
        with self.assertRaisesRegex(CtlError, "certs init.*/nonexistent/ca.pem"):
            Authority.make(type("", (), {"dir": "/nonexistent"}), "node", "n1")

    def test_a_name_is_no_path(self):
        with self.assertRaisesRegex(CtlError, "'../x': expected at most 64 letters"):
            self.authority.make("node", "../x")

    def test_openssl_finds_a_revoked_one_revoked(self):
        made = self.authority.make("node", "n1")
        check = ("openssl", "verify", "-x509_strict", "-crl_check", "-CAfile", self.authority.ca, "-CRLfile", self.authority.revoked,
                 made["certificate"])
        self.assertEqual(run(*check).returncode, 0)
        self.authority.make("revoke", "node-n1")
        self.assertIn("certificate revoked", run(*check).stderr)

    def test_all_that_were_issued_under_the_name_are_revoked(self):
        self.authority.make("user", "ada")
        self.authority.make("user", "ada", "--renew")
        self.authority.make("user", "ada", "--force")
        self.authority.make("user", "ada-b")
        self.assertEqual(len(self.authority.make("revoke", "user-ada")["serials"]), 3)

    def test_one_that_lies_elsewhere_is_given_by_its_path(self):
        made = pathlib.Path(self.authority.make("user", "ada")["certificate"])
        shutil.rmtree(self.authority.dir / "issued")
        with self.assertRaisesRegex(CtlError, "'user-bob': this authority has no certificate of that name"):
            self.authority.make("revoke", "user-bob")
        self.assertEqual(len(self.authority.make("revoke", made)["serials"]), 1)

    def test_a_key_whose_certificate_was_revoked_is_not_renewed(self):
        self.authority.make("node", "n1")
        self.authority.make("node", "n1", "--renew")
        self.authority.make("revoke", "node-n1")
        with self.assertRaisesRegex(CtlError, "has been revoked; --force makes another key"):
            self.authority.make("node", "n1", "--renew")
        self.authority.make("node", "n1", "--force")
        self.authority.make("node", "n1", "--renew")

    def test_another_authority_in_the_folder_revokes_its_own(self):
        self.authority.make("node", "n1")
        self.authority.make("init", self.authority.dir, "--force")
        self.authority.make("node", "n1", "--force")
        self.assertEqual(len(self.authority.make("revoke", "node-n1")["serials"]), 1)
        self.assertEqual(len(list(self.authority.dir.glob("revoked.pem.*"))), 1)

    def test_an_authority_is_not_revoked(self):
        with self.assertRaisesRegex(CtlError, "by taking it out of ca.pem"):
            self.authority.make("revoke", "ca")

    def test_the_list_of_another_authority_is_not_written_over(self):
        other = Authority(self.authority.dir / "other")
        shutil.copy(other.revoked, self.authority.revoked)
        with self.assertRaisesRegex(CtlError, "revoked.pem: a list in it was not signed by a trusted authority"):
            self.authority.make("revoke")

    def test_a_lifetime_has_a_unit(self):
        with self.assertRaisesRegex(CtlError, "--lifetime"):
            self.authority.make("node", "n1", "--lifetime", "90")


if __name__ == "__main__":
    unittest.main()
