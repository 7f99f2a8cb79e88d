"""A certificate authority of one's own: for the nodes of a cluster, and for people who look in from outside.

Elliptic curves (P-256). The authority signs nodes, which may serve and ask, and people, who may only ask.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey as Key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from ethnos.errors import SocietyError
from ethnos.record.directory import write_durably
from ethnos.transport import NODE_NAME

SERVES, ASKS = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH
EARLIER = timedelta(minutes=5)
"""Certificates begin a little before now, for clocks that are a little behind."""


def make(folder: Path, people: Sequence[str] = (), days: int = 90, authority_days: int = 3650) -> list[Path]:
    """Make certificates for nodes and people in folders of their own; returns those. The authority is kept.

    `folder/ca.key` signs: keep it off the cluster. Raises SocietyError for a name that no folder can have.
    """
    if bad := [p for p in people if not p.replace("-", "").replace("_", "").isalnum() or p == "node"]:
        raise SocietyError(f"{bad[0]!r} cannot name a person here: use letters, digits, '-' and '_', not 'node'")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    key, ca = _authority(folder, timedelta(days=authority_days))
    made = [_issue(folder / "node", NODE_NAME, (SERVES, ASKS), key, ca, timedelta(days=days))]
    made += [_issue(folder / person, person, (ASKS,), key, ca, timedelta(days=days)) for person in people]
    return made


def expiry(pem: bytes) -> datetime:
    """When a certificate ends."""
    end: datetime = x509.load_pem_x509_certificate(pem).not_valid_after_utc
    return end


def _authority(folder: Path, lasts: timedelta) -> tuple[Key, x509.Certificate]:
    key_file, cert_file = folder / "ca.key", folder / "ca.pem"
    if key_file.exists():
        key = serialization.load_pem_private_key(key_file.read_bytes(), None)
        assert isinstance(key, Key)
        return key, x509.load_pem_x509_certificate(cert_file.read_bytes())
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name("ethnos authority")
    usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
    cert = (
        _begin(name, name, key, lasts)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .sign(key, hashes.SHA256())
    )
    _write(key_file, cert_file, key, cert)
    return key, cert


def _issue(
    folder: Path,
    name: str,
    uses: Sequence[x509.ObjectIdentifier],
    signer: Key,
    ca: x509.Certificate,
    lasts: timedelta,
) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    cert = (
        _begin(_name(name), ca.subject, key, lasts)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage(uses), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(signer, hashes.SHA256())
    )
    folder.mkdir(exist_ok=True, mode=0o700)
    _write(folder / "key.pem", folder / "cert.pem", key, cert)
    write_durably(folder / "ca.pem", ca.public_bytes(serialization.Encoding.PEM))
    return folder


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _begin(name: x509.Name, issuer: x509.Name, key: Key, lasts: timedelta) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(now, now + lasts) - EARLIER)
        .not_valid_after(now + lasts)
    )


def _write(key_file: Path, cert_file: Path, key: Key, cert: x509.Certificate) -> None:
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    write_durably(key_file, pem, mode=0o600)
    write_durably(cert_file, cert.public_bytes(serialization.Encoding.PEM))


__all__ = ["expiry", "make"]
