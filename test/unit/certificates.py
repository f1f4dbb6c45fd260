"""Owns certificates for tests, made by the openssl command: authorities, servers, clients."""

from __future__ import annotations

from pathlib import Path
import subprocess

_CURVE = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
_AUTHORITY = 'basicConstraints=critical,CA:TRUE'
_SERVER = 'subjectAltName=DNS:localhost,DNS:robot.example,IP:127.0.0.1'


class Authority:
    """
    An authority that signs certificates into a folder.

    :ivar cert: its own certificate.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name
        self.cert = folder / f'{name}.pem'
        self._key = folder / f'{name}.key'
        options = ['-keyout', str(self._key), '-out', str(self.cert), '-days', '30']
        options += ['-subj', f'/CN={name}', '-addext', _AUTHORITY]
        _openssl('req', '-x509', *_CURVE, *options)

    def sign(self, name: str, *, days: int = 30, extension: str = _SERVER) -> tuple[Path, Path]:
        """
        Make a certificate and its key.

        :param days: of life from now; a negative number makes one that has expired.
        """
        stem = self._folder / f'{self._name}-{name}'
        cert, key, asked, more = (stem.with_suffix(s) for s in ('.pem', '.key', '.csr', '.ext'))
        more.write_text(extension + '\n')
        _openssl(
            'req', '-new', *_CURVE, '-keyout', str(key), '-out', str(asked), '-subj', f'/CN={name}'
        )
        signing = ['-CA', str(self.cert), '-CAkey', str(self._key), '-CAcreateserial']
        signing += ['-days', str(days), '-extfile', str(more), '-out', str(cert)]
        _openssl('x509', '-req', '-in', str(asked), *signing)
        key.chmod(0o600)
        return cert, key


def _openssl(*arguments: str) -> None:
    subprocess.run(['openssl', *arguments], check=True, capture_output=True, timeout=30)
