"""The imports of the three packages are read as text; a wrong arrow, a circle or a deferred import fails."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

CORE_MAY_USE = {
    "charset_normalizer", "joblib", "llvmlite", "numba", "numpy", "polars", "pyamg", "python_calamine",
    "scipy", "threadpoolctl", "zstandard",
}  # fmt: skip
OPTIONAL = {"ccmtl_core.methods": {"sklearn"}, "ccmtl_core.reproduce": {"sklearn", "matplotlib"}}
"""What single folders may use besides, which the extra "reproduce" brings."""
CORE_FOLDERS = (
    "base", "kernels", "model", "data", "graph", "statistics",
    "tables", "choices", "solver", "series", "inspection", "fitting", "methods", "reproduce", "forecasting",
)  # fmt: skip
"""From the ground up: each uses only those before it."""
COMPILE_TOO = {"ccmtl_core.graph.leaf_order", "ccmtl_core.graph.leaf_search"}
"""Besides the kernels: loops that serve one file alone."""
MOST_FILES = 12
"""What a reader can take in of one folder."""
CORE_DOORS = {
    "ccmtl_core",
    "ccmtl_core.kernels.compiled",
    "ccmtl_core.base.display",
    "ccmtl_core.base.file_path",
    "ccmtl_core.forecasting",
    "ccmtl_core.forecasting.fitted.latest_rows",
    "ccmtl_core.forecasting.new.histories",
    "ccmtl_core.inspection",
    "ccmtl_core.inspection.id_columns",
    "ccmtl_core.inspection.inspecting",
    "ccmtl_core.inspection.parts.examined",
    "ccmtl_core.inspection.parts.in_pieces",
    "ccmtl_core.inspection.period_checks",
    "ccmtl_core.inspection.reading",
    "ccmtl_core.inspection.repairs",
    "ccmtl_core.inspection.report",
    "ccmtl_core.inspection.row_checks",
    "ccmtl_core.inspection.series_checks",
    "ccmtl_core.series.runs",
    "ccmtl_core.model.ccmtl_model",
    "ccmtl_core.reproduce",
    "ccmtl_core.base.near_matches",
    "ccmtl_core.base.system_errors",
    "ccmtl_core.tables.cell_hints",
    "ccmtl_core.tables",
    "ccmtl_core.tables.cells",
    "ccmtl_core.tables.csv_file",
    "ccmtl_core.tables.containers.formats",
    "ccmtl_core.tables.containers.unpack",
    "ccmtl_core.tables.decompression",
    "ccmtl_core.tables.dialects.repeated_columns",
    "ccmtl_core.tables.faults",
    "ccmtl_core.tables.header",
    "ccmtl_core.tables.sample_files",
    # What can be chosen, with defaults and words for it, so that these stand once:
    "ccmtl_core.choices.model_choices",
    "ccmtl_core.fitting.rivals",
    "ccmtl_core.fitting.scoring",
    "ccmtl_core.fitting.selection",
    "ccmtl_core.solver.fusion_solver",
    "ccmtl_core.solver.objective",
    "ccmtl_core.tables.statistics_table",
    "ccmtl_core.tables.table",
    "ccmtl_core.tables.table_file",
    "ccmtl_core.tables.dates.timestamps",
    "ccmtl_core.tables.wide.shape",
}
SLICES_MAY_USE = {
    "app.access": set(),
    "app.datasets": set(),
    "app.registry": set(),
    "app.predictions": {"app.registry"},
    "app.protocols": {"app.predictions", "app.registry"},
    "app.training": {"app.datasets", "app.registry", "app.jobs"},
    "app.jobs": set(),
    "app.schedules": {"app.training"},
    "app.webhooks": {"app.access"},
}
ENTRIES = {
    "app.commands.cli",
    "app.jobs.fit_child",
    "app.jobs.worker",
    "app.main",
    "app.processes.supervisor",
}
"""Where processes begin: they may use everything, and nothing uses them, but for commands by their names."""
PRIVATE_ROOMS = {"endpoints", "repository"}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def trees() -> dict[str, ast.Module]:
    """What stands in each file, by the name of its module."""
    return {
        module_name(path): ast.parse(path.read_text())
        for package in ("app", "ccmtl_core", "ccmtl_client")
        for path in sorted((ROOT / package).rglob("*.py"))
    }


@cache
def names_bound_in(module: str) -> set[str]:
    """Names that the module imports for others: they hide submodules of the same name."""
    statements = trees()[module].body if module in trees() else []
    return {a.asname or a.name for node in statements if isinstance(node, ast.ImportFrom) for a in node.names}


def imported(node: ast.stmt) -> list[str]:
    """Names of the modules that one statement imports; ``from package import module`` names the module."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, "imports are absolute"
        base = node.module or ""
        names = {alias.name for alias in node.names} - names_bound_in(base)
        inner = {f"{base}.{name}" for name in names} & trees().keys()
        whole = {base} if len(inner) < len(node.names) else set()
        return sorted(inner | whole)
    return []


@cache
def imports() -> dict[str, set[str]]:
    """Names of the modules that each module imports."""
    return {
        name: {target for node in ast.walk(tree) if isinstance(node, ast.stmt) for target in imported(node)}
        for name, tree in trees().items()
    }


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def arrows(package: str) -> list[tuple[str, str]]:
    return [
        (source, target)
        for source in imports()
        if within(source, package)
        for target in sorted(imports()[source])
    ]


def slice_of(module: str) -> str | None:
    return next((name for name in SLICES_MAY_USE if within(module, name)), None)


def test_there_is_something_to_read() -> None:
    assert "app.http.health" in imports()["app.main"]
    assert "app.registry.service" in imports()["app.registry.endpoints"]
    assert len(imports()) > 40


def test_the_core_knows_no_service() -> None:
    allowed = CORE_MAY_USE | set(sys.stdlib_module_names) | {"ccmtl_core"}
    wrong = [
        (source, target)
        for source, target in arrows("ccmtl_core")
        if (top := target.partition(".")[0]) not in allowed
        and not any(within(source, folder) and top in names for folder, names in OPTIONAL.items())
    ]
    assert wrong == []


def test_the_client_knows_neither_the_service_nor_the_core() -> None:
    allowed = {"ccmtl_client", "httpx2"} | set(sys.stdlib_module_names)
    assert [a for a in arrows("ccmtl_client") if a[1].partition(".")[0] not in allowed] == []


def test_nothing_needs_the_client() -> None:
    wrong = [a for p in ("app", "ccmtl_core") for a in arrows(p) if within(a[1], "ccmtl_client")]
    assert wrong == []


def test_the_service_compiles_as_the_core_does() -> None:
    assert [arrow for arrow in arrows("app") if within(arrow[1], "numba")] == []


def test_the_service_enters_the_core_by_its_doors() -> None:
    wrong = [a for a in arrows("app") if within(a[1], "ccmtl_core") and a[1] not in CORE_DOORS]
    assert wrong == []


def test_what_is_compiled_lies_among_the_kernels() -> None:
    """So that a reader, and what compiles them at set-up, find all of it in one place."""
    compiled = {"ccmtl_core.kernels.compiled.kernel", "ccmtl_core.kernels.compiled.inlined"}
    wrong = [
        name
        for name, tree in trees().items()
        if not within(name, "ccmtl_core.kernels") and name not in COMPILE_TOO
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        and {f"{node.module}.{alias.name}" for alias in node.names} & compiled
    ]
    assert wrong == []


def test_the_solver_sees_blocks_alone() -> None:
    """Not the statistics that users hand over, with their names, sums and checks."""
    forms = {"inputs", "sufficient_statistics", "triangular_statistics"}
    wrong = [a for a in arrows("ccmtl_core.solver") if a[1] in {f"ccmtl_core.statistics.{f}" for f in forms}]
    assert wrong == []


def core_folder(module: str) -> str:
    return module.split(".")[1] if module.count(".") else ""


def test_folders_of_the_core_use_only_those_before_them() -> None:
    wrong = [
        (source, target)
        for source, target in arrows("ccmtl_core")
        if within(target, "ccmtl_core")
        and core_folder(source)
        and CORE_FOLDERS.index(core_folder(source)) < CORE_FOLDERS.index(core_folder(target))
    ]
    assert wrong == []


def test_no_folder_of_the_core_is_too_full() -> None:
    files = Counter(path.parent for path in (ROOT / "ccmtl_core").rglob("*.py"))
    assert {folder: n for folder, n in files.items() if n > MOST_FILES} == {}


def test_no_module_imports_itself_around_a_circle() -> None:
    try:
        TopologicalSorter({name: targets & trees().keys() for name, targets in imports().items()}).prepare()
    except CycleError as error:
        pytest.fail("a circle of imports: " + " → ".join(error.args[1]))


def test_no_import_is_deferred() -> None:
    deferred = [
        f"{name}:{node.lineno}"
        for name, tree in trees().items()
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    assert deferred == []


def test_slices_use_only_the_slices_below_them() -> None:
    wrong = [
        (source, target)
        for source, target in arrows("app")
        if source not in ENTRIES
        and slice_of(source) is not None
        and slice_of(target) not in {None, slice_of(source)} | SLICES_MAY_USE[slice_of(source) or ""]
    ]
    assert wrong == []


def test_shared_parts_use_no_slice() -> None:
    wrong = [
        (source, target)
        for source, target in arrows("app")
        if source not in ENTRIES and slice_of(source) is None and slice_of(target) is not None
    ]
    assert wrong == []


def test_endpoints_and_sql_stay_inside_their_slice() -> None:
    wrong = [
        (source, target)
        for source, target in arrows("app")
        if target.rpartition(".")[2] in PRIVATE_ROOMS
        and slice_of(source) != slice_of(target)
        and (source, target.rpartition(".")[2]) != ("app.main", "endpoints")
    ]
    assert wrong == []


def test_nothing_uses_the_places_where_processes_begin() -> None:
    wrong = [a for a in arrows("app") if a[1] in ENTRIES]
    assert wrong == []


@pytest.mark.parametrize("name", ["access", "datasets", "training", "registry", "schedules", "webhooks"])
def test_each_slice_has_the_same_rooms(name: str) -> None:
    rooms = {f"app.{name}.{room}" for room in ("endpoints", "schemas", "service", "repository")}
    assert rooms <= trees().keys()
