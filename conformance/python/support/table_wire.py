"""Table requests by hand: signed as the protocol says, over one kept connection, answered as they came."""

import base64
import datetime
import email.utils
import hashlib
import hmac
import http.client
import json
import ssl

from support.table import ACCOUNT, ACCOUNT_KEY

MINIMAL = "application/json;odata=minimalmetadata"
NO_METADATA = "application/json;odata=nometadata"
FULL = "application/json;odata=fullmetadata"


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def code(self):
        """The code in an error body, which has one shape."""
        error = self.json["odata.error"]
        assert set(error) == {"code", "message"} and error["message"]["lang"] == "en-US"
        text = error["message"]["value"]
        assert "\nRequestId:" in text and "\nTime:" in text, text
        return error["code"]

    @property
    def refusal(self):
        """Status and code."""
        return self.status, self.code

    def __repr__(self):
        return f"{self.status} {self.headers} {self.body!r}"


def signature(key, text):
    return base64.b64encode(hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256).digest()).decode()


def now(minutes=0):
    """A date of HTTP, that many minutes from now."""
    moment = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(minutes=minutes)
    return email.utils.format_datetime(moment, usegmt=True)


class TableWire:
    """One connection. `style` says where the account is: in the path, or in the host."""

    def __init__(self, service, scheme="http", account=ACCOUNT, key=ACCOUNT_KEY, timeout=30):
        self.service, self.scheme, self.account, self.key, self.timeout = service, scheme, account, key, timeout
        self.connection = None

    @property
    def base(self):
        """The address that links in answers begin with."""
        return f"{self.scheme}://127.0.0.1:{self.service.port}/{self.account}"

    def send(self, method, path, body=None, headers=None, scheme_of_key="SharedKey", host=None, **options):
        """A signed request. `path` begins after the account; headers of value None are not sent."""
        full = path if host else f"/{self.account}{path}"
        sent = {"x-ms-date": now(), "x-ms-version": "2019-02-02", "Accept": MINIMAL}
        sent |= {"DataServiceVersion": "3.0", "MaxDataServiceVersion": "3.0;NetFx"}
        if body is not None:
            sent["Content-Type"] = "application/json"
            body = body if isinstance(body, (bytes, str)) else json.dumps(body)
        if host:
            sent["Host"] = host
        sent |= headers or {}
        sent = {name: value for name, value in sent.items() if value is not None}
        if scheme_of_key and "Authorization" not in sent:
            sent["Authorization"] = self.authorization(method, full, sent, scheme_of_key, **options)
        return self.bare(method, full, body, sent)

    def authorization(self, method, full, sent, scheme, account=None, key=None):
        """The header of a request that is otherwise ready."""
        account, key = account or self.account, key or self.key
        path, _, query = full.partition("?")
        resource = f"/{account}{path}"
        comp = [part for part in query.split("&") if part.startswith("comp=")]
        if comp:
            resource += "?" + comp[0]
        date = sent.get("x-ms-date") or sent.get("Date", "")
        lines = [date, resource]
        if scheme == "SharedKey":
            lines = [method, sent.get("Content-MD5", ""), sent.get("Content-Type", ""), *lines]
        return f"{scheme} {account}:{signature(key, chr(10).join(lines))}"

    def bare(self, method, full, body=None, headers=None):
        """A request with exactly these headers."""
        body = body.encode() if isinstance(body, str) else body
        for attempt in (1, 2):
            fresh = self.connection is None
            self.connection = self.connection or self._connect()
            try:
                self.connection.request(method, full, body, headers or {})
                answer = self.connection.getresponse()
                return Answer(answer.status, answer.headers, answer.read())
            except (http.client.RemoteDisconnected, ConnectionError):
                self.close()
                # A kept connection may have been closed meanwhile; a fresh one may not.
                if fresh or attempt == 2:
                    raise
        raise AssertionError("unreachable")

    def insert(self, table, entity, **headers):
        return self.send("POST", f"/{table}", entity, headers)

    def close(self):
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def _connect(self):
        if self.scheme == "http":
            return http.client.HTTPConnection("127.0.0.1", self.service.port, timeout=self.timeout)
        context = ssl.create_default_context(cafile=self.service.authority)
        return http.client.HTTPSConnection("127.0.0.1", self.service.port, timeout=self.timeout, context=context)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
