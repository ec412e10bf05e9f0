"""The documentation says what the program does: settings, links, make targets, docstrings."""

import ast
import re
from pathlib import Path

import pytest
from pydantic_core import PydanticUndefined

from app.settings import Settings
from scripts.guide_blocks import PAGES as GUIDES
from scripts.guide_blocks import blocks_of

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
FOLDERS = ("app", "ccmtl_client", "ccmtl_core", "examples", "benchmarks", "tests", "scripts")
SOURCES = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]


def settings_rows() -> list[str]:
    """The table of docs/operations.md as the settings themselves would write it."""
    rows = []
    for name, field in Settings.model_fields.items():
        assert field.default is not PydanticUndefined, f"{name} has no default"
        default = "" if field.default is None else f"`{field.default}`"
        rows.append(f"| `CCMTL_{name.upper()}` | {default} | {field.description} |")
    return rows


def test_the_settings_table_is_the_settings() -> None:
    page = (ROOT / "docs" / "operations.md").read_text()
    documented = [line for line in page.splitlines() if line.startswith("| `CCMTL_")]
    assert documented == settings_rows()


def test_every_setting_has_a_description() -> None:
    assert all(field.description for field in Settings.model_fields.values())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_make_target_and_path_in_code_exists(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text()
    code = re.findall(r"`([^`\n]+)`", page.read_text())
    targets = {match[1] for text in code if (match := re.match(r"make ([a-z-]+)", text))}
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets), targets
    roots = "app|ccmtl_client|ccmtl_core|docs|examples|benchmarks|tests|requirements|scripts"
    paths = {text for text in code if re.fullmatch(rf"({roots})/[\w./-]+", text)}
    assert not [path for path in paths if not (ROOT / path).exists()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_source_file_that_is_named_is_there_once(page: Path) -> None:
    named = set(re.findall(r"`([\w/]+\.py)`", page.read_text()))
    if page.name == "method.md":
        assert named
        assert [name for name in named if not (ROOT / "ccmtl_core" / name).is_file()] == []
    else:
        files = [f"/{path.relative_to(ROOT)}" for path in SOURCES]
        assert [name for name in named if sum(file.endswith(f"/{name}") for file in files) != 1] == []


def test_every_decision_has_a_date_and_a_status_and_is_listed_with_them() -> None:
    listed = (ROOT / "docs/decisions/README.md").read_text()
    for number, page in enumerate(sorted((ROOT / "docs/decisions").glob("0*.md")), start=1):
        title, _, stands = page.read_text().splitlines()[:3]
        found = re.fullmatch(
            r"Date: (20\d\d-\d\d-\d\d)\. Status: ((accepted|changed|superseded)\b.*)\.", stands
        )
        assert found, page.name
        name = title.removeprefix(f"# {number}. ")
        assert f"| {number} | [{name}]({page.name}) | {found[1]} | {found[3]} |" in listed


def test_a_docstring_with_parameters_has_returns() -> None:
    without = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for package in ("app", "ccmtl_client", "ccmtl_core")
        for path in sorted((ROOT / package).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.returns is not None
        and ast.unparse(node.returns) not in ("None", "NoReturn")
        and "Parameters\n---" in (text := ast.get_docstring(node) or "")
        and not re.search("(Returns|Yields)\n---", text)
    ]
    assert without == []


def test_every_block_of_the_guides_is_one_that_the_walk_knows() -> None:
    """It runs what stands between fences; an indented command, or another language, would escape it."""
    for page in GUIDES:
        text = (ROOT / page).read_text()
        fences = re.findall(r"^ *```(\S*)", text, re.MULTILINE)
        assert set(fences[::2]) <= {"sh", "python", "json"}, page
        assert set(fences[1::2]) <= {""}, page
        assert len(list(blocks_of([page]))) == fences.count("sh") + fences.count("python")
        outside = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
        assert not re.findall(r"\n\n    .*", outside), page


def test_no_page_replaces_the_checkout_by_a_frozen_copy_of_it() -> None:
    """``pip install .`` would: later changes of the checkout then have no effect."""
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        for command in re.findall(r"pip install [^`\n]*", page.read_text()):
            assert not re.search(r"(?<!editable) '?\.(\[|'|$)", command), (page.name, command)


def is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)


def tuned(path: Path) -> set[str]:
    """Names that a module gives to numbers at its top."""
    given = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.Assign)]
    numbers = [node for node in given if any(map(is_number, ast.walk(node.value)))]
    targets = [part for node in numbers for target in node.targets for part in ast.walk(target)]
    return {part.id for part in targets if isinstance(part, ast.Name)}


def test_every_number_that_was_tuned_is_listed_with_what_it_was_measured_on() -> None:
    core, file = ROOT / "ccmtl_core", ""
    listed: dict[str, set[str]] = {}
    for line in (ROOT / "docs" / "constants.md").read_text().splitlines():
        if line.startswith("|") and "`" in line:
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            file = cells[0].strip("`") or file
            assert cells[2]
            listed.setdefault(file, set()).update(re.findall(r"`(\w+)`", cells[1]))
    others = (core / "fitting" / "strength.py", core / "kernels" / "cholesky.py")
    found = {str(p.relative_to(core)): tuned(p) for p in (*(core / "solver").rglob("*.py"), *others)}
    assert listed == {name: names for name, names in found.items() if names}
