"""The dependency rules of the architecture, as far as a machine can check them."""

from importlib.metadata import packages_distributions
from pathlib import Path

from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

ROOT = Path(__file__).parents[2]
OURS = ("contracts", "partitioners", "tailpack", "services", "autoscaler", "loadgen", "report", "bench")


def test_imports_follow_the_contracts(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)

    status = lint_imports(config_filename=str(ROOT / ".importlinter"), cache_dir=str(tmp_path))

    assert status == EXIT_STATUS_SUCCESS, capsys.readouterr().out


def test_no_dependency_ships_a_package_with_one_of_our_names():
    shipped = packages_distributions()

    strangers = {name: set(shipped.get(name, ())) - {"tailpack"} for name in OURS}

    assert not {name: who for name, who in strangers.items() if who}
