"""The program around the database: exit codes, settings, health, metrics, TLS, HTTP/2."""

import json
import socket
import ssl

import httpx
import pytest
import requests

from support import server as program
from support.server import EMULATOR_KEY, Server
from support.wire import Wire, headers_for


def test_a_busy_port_is_exit_69_and_names_the_flag(server, tmp_path):
    result = program.run("--data", str(tmp_path / "other"), "--nosql", f"127.0.0.1:{server.port}")
    assert result.returncode == 69
    assert "--nosql" in result.stderr and str(server.port) in result.stderr


def test_a_data_folder_in_use_is_exit_74_and_names_the_flag(server):
    result = program.run("--data", server.data, "--nosql", "127.0.0.1:0")
    assert result.returncode == 74
    assert "--data" in result.stderr and server.data in result.stderr


def test_a_data_folder_that_cannot_be_made_is_exit_74(tmp_path):
    (tmp_path / "file").write_text("no folder")
    result = program.run("--data", str(tmp_path / "file" / "data"), "--nosql", "127.0.0.1:0")
    assert result.returncode == 74 and "file" in result.stderr


def test_data_in_use_cannot_be_verified(server):
    result = program.run("verify", "--data", server.data)
    assert result.returncode == 74 and "another server is using it" in result.stderr


def test_a_folder_without_data_cannot_be_verified_and_stays_as_it_is(tmp_path):
    result = program.run("verify", "--data", str(tmp_path))
    assert result.returncode == 74 and "--data" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_data_are_verified_after_a_stop_and_after_a_crash(tmp_path):
    with Server(tmp_path / "data") as server:
        with Wire(server.port) as wire:
            wire.send("POST", "/dbs", {"id": "d"})
            definition = {"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}}
            wire.send("POST", "/dbs/d/colls", definition)
            for number in range(3):
                headers = {"x-ms-documentdb-partitionkey": f'["{number}"]'}
                item = {"id": str(number), "pk": str(number)}
                assert wire.send("POST", "/dbs/d/colls/c/docs", item, headers).status == 201
        server.kill()
        for _ in range(2):
            result = program.run("verify", "--data", server.data)
            assert (result.returncode, result.stdout) == (0, "d/c: 3 documents, sound\n1 containers, sound\n")
            server.start()
            assert server.stop() == 0


def test_the_data_folder_is_for_its_owner_only(tmp_path):
    with Server(tmp_path / "data"):
        for folder in (tmp_path / "data", tmp_path / "data" / "tls" / "authority-key.pem"):
            assert folder.stat().st_mode & 0o077 == 0, folder


@pytest.mark.parametrize("arguments", [["--no-such-flag"], ["no-such-command"], ["config"], ["--data"]])
def test_a_wrong_command_line_is_exit_2(arguments):
    result = program.run(*arguments)
    assert result.returncode == 2 and "--help" in result.stderr + result.stdout


@pytest.mark.parametrize("arguments, name", [
    (["--nosql", "nowhere"], "nosql"),
    (["--durability", "maybe"], "durability"),
    (["--partition-max-throughput", "0"], "partition-max-throughput"),
    (["--cache-bytes", "much"], "cache-bytes"),
    (["--log-format", "xml"], "log-format"),
    (["--nosql", "0.0.0.0:0"], "nosql"),
    (["--nosql", "off"], "off"),
])
def test_a_wrong_setting_is_exit_78_and_named(tmp_path, arguments, name):
    result = program.run("--data", str(tmp_path / "data"), *arguments)
    assert result.returncode == 78 and name in result.stderr


def test_a_wrong_settings_file_is_exit_78(tmp_path):
    settings = tmp_path / "settings.toml"
    settings.write_text('durabilty = "sync"\n')
    result = program.run("config", "show", "--config", str(settings))
    assert result.returncode == 78 and "did you mean" in result.stderr
    assert program.run("config", "show", "--config", str(tmp_path / "none.toml")).returncode == 78


def test_config_show_tells_where_each_value_came_from(tmp_path):
    settings = tmp_path / "settings.toml"
    settings.write_text('durability = "buffered"\ncache-bytes = 1000\nlog = "debug"\n')
    environment = {"PERIHELION_CACHE_BYTES": "2000", "PERIHELION_LOG": "warn"}
    result = program.run("config", "show", "--origin", "--config", str(settings), "--log", "error", env=environment)
    assert result.returncode == 0
    lines = {line.split("=")[0].strip(): line for line in result.stdout.splitlines()}
    assert '"error"' in lines["log"] and "flag" in lines["log"]
    assert '"2000"' in lines["cache-bytes"] and "PERIHELION_CACHE_BYTES" in lines["cache-bytes"]
    assert '"buffered"' in lines["durability"] and str(settings) in lines["durability"]
    assert '"127.0.0.1:8081"' in lines["nosql"] and "default" in lines["nosql"]
    without = program.run("config", "show")
    assert without.returncode == 0 and "#" not in without.stdout


def test_help_and_version_are_no_errors():
    assert program.run("--help").returncode == 0
    version = program.run("--version")
    assert version.returncode == 0 and version.stdout.startswith("perihelion ")


def test_health_and_metrics_need_no_credential(server):
    for scheme in ("http", "https"):
        base = server.endpoint(scheme)
        assert requests.get(f"{base}health/live", verify=False).text == "live\n"
        assert requests.get(f"{base}health/ready", verify=False).text == "ready\n"
        metrics = requests.get(f"{base}metrics", verify=False).text
        assert "perihelion_store_healthy 1" in metrics
        assert requests.get(f"{base}health/other", verify=False).status_code == 404
        assert requests.post(f"{base}health/live", verify=False).status_code == 405


def test_metrics_count_requests(server):
    def count(status):
        text = requests.get(f"{server.endpoint()}metrics").text
        line = next(line for line in text.splitlines() if line.startswith(f'perihelion_requests_total{{status="{status}"}}'))
        return int(line.split()[-1])

    before = count("4xx")
    with Wire(server.port) as wire:
        wire.send("GET", "/dbs/none")
        wire.send("GET", "/dbs/none")
    assert count("4xx") >= before + 2


def test_the_first_screen_has_what_a_person_needs(tmp_path):
    import subprocess
    process = subprocess.Popen(
        [program.program(), "--data", str(tmp_path / "data"), "--nosql", "127.0.0.1:0"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line.startswith("ready "):
                break
    finally:
        process.kill()
        process.wait()
    text = "".join(lines)
    assert f"AccountKey={EMULATOR_KEY}" in text and "AccountEndpoint=https://127.0.0.1:" in text
    assert "emulator.pem" in text


def test_the_certificate_is_trusted_through_its_authority(server, tmp_path):
    authority = tmp_path / "authority.pem"
    authority.write_text(requests.get(f"{server.endpoint()}_explorer/emulator.pem").text)
    headers = headers_for("GET", "/")
    for host in ("127.0.0.1", "localhost"):
        answer = requests.get(f"https://{host}:{server.port}/", headers=headers, verify=str(authority))
        assert answer.status_code == 200
    with pytest.raises(requests.exceptions.SSLError):
        requests.get(server.endpoint("https"), headers=headers, verify=True)


def test_the_sdk_trusts_the_authority_too(server, tmp_path):
    from azure.cosmos import CosmosClient
    authority = tmp_path / "authority.pem"
    authority.write_text(requests.get(f"{server.endpoint()}_explorer/emulator.pem").text)
    client = CosmosClient(server.endpoint("https"), EMULATOR_KEY, connection_verify=str(authority))
    assert isinstance(list(client.list_databases()), list)


def test_old_tls_is_refused(server):
    context = ssl._create_unverified_context()
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    with socket.create_connection(("127.0.0.1", server.port)) as plain, pytest.raises((ssl.SSLError, ConnectionError)):
        context.wrap_socket(plain, server_hostname="localhost")


def test_http_2_over_tls(server):
    with httpx.Client(http2=True, verify=False, base_url=server.endpoint("https")) as client:
        def send(verb, path, body=None, **headers):
            content = None if body is None else json.dumps(body)
            return client.request(verb, path, content=content, headers={**headers_for(verb, path), **headers})

        answer = send("GET", "/")
        assert answer.http_version == "HTTP/2" and answer.status_code == 200
        assert answer.json()["writableLocations"][0]["databaseAccountEndpoint"] == server.endpoint("https")
        send("POST", "/dbs", {"id": "http2"})
        send("POST", "/dbs/http2/colls", {"id": "c", "partitionKey": {"paths": ["/pk"], "version": 2}})
        key = {"x-ms-documentdb-partitionkey": '["a"]'}
        for number in range(20):
            created = send("POST", "/dbs/http2/colls/c/docs", {"id": str(number), "pk": "a"}, **key)
            assert created.status_code == 201 and created.http_version == "HTTP/2"
        assert send("GET", "/dbs/http2/colls/c/docs/7", **key).json()["id"] == "7"
        assert send("GET", "/dbs/http2/colls/c/docs").json()["_count"] == 20
        assert send("DELETE", "/dbs/http2").status_code == 204


def test_nonsense_on_the_socket_harms_nobody(server):
    for junk in (b"\x00" * 100, b"\x16\x03\x01\x00\x05hello", b"GET / HTTP/9.9\r\n\r\n", b"\xff" * 10, b"", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff"):
        with socket.create_connection(("127.0.0.1", server.port), timeout=5) as connection:
            # The server may hang up at any moment of this; only that it goes on with others matters.
            try:
                connection.sendall(junk)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(4096):
                    pass
            except OSError:
                pass
    assert requests.get(f"{server.endpoint()}health/ready").status_code == 200


def test_a_request_to_stop_lets_the_server_end_well_and_free_its_folder(tmp_path):
    server = Server(tmp_path / "data")
    with server:
        assert server.stop() == 0
        server.start()
        assert server.stop() == 0
