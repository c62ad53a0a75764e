"""An identity provider for tests: an RSA key, its key set, and tokens signed with it, without any library."""

import base64
import hashlib
import json
import secrets
import time

PRIME_BITS = 1024
EXPONENT = 65537
#: What stands before a SHA-256 hash in a PKCS #1 signature.
SHA256_PREFIX = bytes.fromhex("3031300d060960864801650304020105000420")


class Issuer:
    """One issuer with one key."""

    def __init__(self, name="https://issuer.example", key_id="1"):
        self.name, self.key_id = name, key_id
        p, q = _prime(), _prime()
        self.modulus = p * q
        self.private = pow(EXPONENT, -1, (p - 1) * (q - 1))

    def key_set(self):
        number = self.modulus.to_bytes(2 * PRIME_BITS // 8, "big")
        key = {"kty": "RSA", "use": "sig", "kid": self.key_id, "n": _url(number), "e": _url(EXPONENT.to_bytes(3, "big"))}
        return json.dumps({"keys": [key]})

    def token(self, principal, audience, seconds=3600):
        now = int(time.time())
        header = {"typ": "JWT", "alg": "RS256", "kid": self.key_id}
        claims = {"iss": self.name, "aud": audience, "oid": principal, "nbf": now - 5, "exp": now + seconds}
        text = ".".join(_url(json.dumps(part).encode()) for part in (header, claims))
        return f"{text}.{_url(self._sign(text.encode()))}"

    def _sign(self, message):
        size = 2 * PRIME_BITS // 8
        digest = SHA256_PREFIX + hashlib.sha256(message).digest()
        padded = b"\x00\x01" + b"\xff" * (size - len(digest) - 3) + b"\x00" + digest
        return pow(int.from_bytes(padded, "big"), self.private, self.modulus).to_bytes(size, "big")


def _url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _prime():
    while True:
        # The two highest bits are set, so that a product of two has all of its length.
        candidate = secrets.randbits(PRIME_BITS) | 3 << (PRIME_BITS - 2) | 1
        if candidate % EXPONENT != 1 and all(candidate % small for small in (3, 5, 7, 11, 13, 17, 19)):
            if _is_prime(candidate):
                return candidate


def _is_prime(candidate):
    odd, twos = candidate - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for _ in range(16):
        power = pow(secrets.randbelow(candidate - 3) + 2, odd, candidate)
        if power in (1, candidate - 1):
            continue
        for _ in range(twos - 1):
            power = power * power % candidate
            if power == candidate - 1:
                break
        else:
            return False
    return True
