"""Intel AMT on 127.0.0.1: the power service over WS-Management with MD5 digest, as the helper needs it; with faults."""

import hashlib
import re
from http.server import BaseHTTPRequestHandler
from xml.etree import ElementTree as xml

from tests.helpers.fake_device import FakeDevice

SOAP = "{http://www.w3.org/2003/05/soap-envelope}"
ADDRESSING = "{http://schemas.xmlsoap.org/ws/2004/08/addressing}"
WSMAN = "{http://schemas.dmtf.org/wbem/wsman/1/wsman.xsd}"
CIM = "http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/"
REALM = "Digest:4C1D0000000000000000000000000000"


class FakeAmt(FakeDevice):
    """`power` is the CIM power state. `returns`: what a request returns. `lag`: how many questions a change takes to
    show. `refuse_on`: how many requests to switch on fail. `uses`: how often one nonce may be used."""

    def __init__(self, password: str = "P@ssw0rd") -> None:
        self.power = 2
        self.password = password
        self.returns = "0"
        self.lag = 0
        self.refuse_on = 0
        self.uses = 1000
        self.nonce = 0
        self.requests: list[int] = []
        self.challenges = 0
        self.body: bytes | None = None
        self._counts: set[str] = set()
        self._next: list[int] = []
        self.serve()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        sent = request.rfile.read(int(request.headers["Content-Length"]))
        if not self._authorised(request):
            self.nonce += 1
            self.challenges += 1
            self._counts = set()
            request.send_response(401)
            request.send_header(
                "WWW-Authenticate", f'Digest realm="{REALM}", nonce="n{self.nonce}",stale="false",qop="auth"'
            )
            request.send_header("Content-Length", "0")
            request.end_headers()
            return
        body = self.body or self._served(sent)
        request.send_response(200)
        request.send_header("Content-Type", "application/soap+xml; charset=UTF-8")
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    def _authorised(self, request: BaseHTTPRequestHandler) -> bool:
        header = request.headers.get("Authorization", "")
        told = dict(re.findall(r'(\w+)="?([^",]+)"?', header))

        def md5(text: str) -> str:
            return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()

        secret = md5(f"admin:{REALM}:{self.password}")
        wanted = md5(f"{secret}:n{self.nonce}:{told.get('nc')}:{told.get('cnonce')}:auth:{md5('POST:/wsman')}")
        fresh = told.get("nc") not in self._counts and len(self._counts) < self.uses
        self._counts.add(told.get("nc", ""))
        return fresh and told.get("response") == wanted

    def _served(self, sent: bytes) -> bytes:
        envelope = xml.fromstring(sent)
        header, body = envelope.find(f"{SOAP}Header"), envelope.find(f"{SOAP}Body")
        assert header is not None and body is not None
        action, uri = header.findtext(f"{ADDRESSING}Action", ""), header.findtext(f"{WSMAN}ResourceURI", "")
        if action.endswith("transfer/Get") and uri == f"{CIM}CIM_AssociatedPowerManagementService":
            if self._next and self.lag <= 0:
                self.power = self._next.pop()
            self.lag -= 1 if self._next else 0
            return self._envelope(f"<g:CIM_AssociatedPowerManagementService xmlns:g='{uri}'><g:PowerState>{self.power}"
                                  "</g:PowerState></g:CIM_AssociatedPowerManagementService>")  # fmt: skip
        if action == f"{uri}/RequestPowerStateChange" and uri == f"{CIM}CIM_PowerManagementService":
            return self._switched(uri, body)
        return self._envelope(
            "<a:Fault><a:Code><a:Value>a:Sender</a:Value></a:Code><a:Reason><a:Text xml:lang='en-US'>The action is not "
            "supported by the service.</a:Text></a:Reason></a:Fault>"
        )

    def _switched(self, uri: str, body: xml.Element) -> bytes:
        inner = body.find(f"{{{uri}}}RequestPowerStateChange_INPUT")
        assert inner is not None
        managed = inner.find(f"{{{uri}}}ManagedElement")
        assert managed is not None
        named = {found.get("Name"): found.text for found in managed.iter(f"{WSMAN}Selector")}
        assert named == {"CreationClassName": "CIM_ComputerSystem", "Name": "ManagedSystem"}
        wanted = int(inner.findtext(f"{{{uri}}}PowerState", ""))
        self.requests.append(wanted)
        returns = self.returns
        if wanted == 2 and self.refuse_on > 0:
            self.refuse_on -= 1
            returns = "2"
        if returns in ("0", "4096"):
            self._next = [wanted]
        return self._envelope(f"<g:RequestPowerStateChange_OUTPUT xmlns:g='{uri}'><g:ReturnValue>{returns}"
                              "</g:ReturnValue></g:RequestPowerStateChange_OUTPUT>")  # fmt: skip

    def _envelope(self, body: str) -> bytes:
        return (
            "<?xml version='1.0' encoding='UTF-8'?><a:Envelope xmlns:a='http://www.w3.org/2003/05/soap-envelope'>"
            f"<a:Header/><a:Body>{body}</a:Body></a:Envelope>"
        ).encode()
