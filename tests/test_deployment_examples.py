"""The examples of a systemd service and a reverse proxy fit the program's commands, settings and limits."""

import configparser
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from app.commands.cli import COMMANDS
from app.settings import Settings, variable

EXAMPLES = Path(__file__).parents[1] / "examples" / "deploy"
UNIT = EXAMPLES / "ccmtl.service"
PROXY = re.sub(r"#.*", "", (EXAMPLES / "nginx.conf").read_text())


def directive(name: str) -> str:
    """The value of a line of the proxy's file that stands there once."""
    (value,) = re.findall(rf"^\s*{name}\s+(.*);\s*$", PROXY, re.MULTILINE)
    return str(value)


def test_the_unit_runs_a_command_that_exists_with_settings_that_exist() -> None:
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(UNIT.read_text())
    service = unit["Service"]
    assert service["ExecStart"].split() == ["/opt/ccmtl/.venv/bin/ccmtl", "serve"]
    assert "serve" in COMMANDS
    given = dict(setting.split("=") for setting in service["Environment"].split())
    assert given.keys() - {variable(name) for name in Settings.model_fields} == {"NUMBA_CACHE_DIR"}
    assert given["CCMTL_DATA_DIR"] == f"/var/lib/{service['StateDirectory']}"
    assert given["NUMBA_CACHE_DIR"] == f"/var/cache/{service['CacheDirectory']}"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not here")
def test_systemd_finds_no_fault_in_the_unit(tmp_path: Path) -> None:
    there = UNIT.read_text().replace("/opt/ccmtl/.venv/bin/ccmtl", shutil.which("true") or "")
    (tmp_path / "ccmtl.service").write_text(there)
    command = ["systemd-analyze", "verify", "--man=no", str(tmp_path / "ccmtl.service")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, [line for line in done.stderr.splitlines() if "ccmtl" in line]) == (0, [])


def test_the_proxy_lets_through_what_the_service_takes() -> None:
    settings = Settings()
    assert "Authorization" not in PROXY, "it passes the keys on"
    assert "X-Forwarded-For" in PROXY, "so that nothing is forwarded to a service without keys"
    assert directive("listen") == "443 ssl"
    assert directive("proxy_pass") == f"http://{settings.host}:{settings.port}"
    assert directive("client_max_body_size") == f"{settings.max_upload_bytes >> 20}m"
    assert directive("proxy_buffering") == directive("proxy_request_buffering") == "off"


@pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not here")
def test_nginx_reads_the_proxys_file(tmp_path: Path) -> None:
    plain = re.sub(r"(?m)^\s*ssl_.*$", "", (EXAMPLES / "nginx.conf").read_text()).replace("443 ssl", "8443")
    file = tmp_path / "nginx.conf"
    file.write_text(f"pid {tmp_path}/pid; events {{}} http {{ {plain} }}")
    done = subprocess.run(["nginx", "-t", "-c", str(file)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
