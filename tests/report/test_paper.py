"""What the paper prints: in the manual as in the reports."""

from pathlib import Path

from dsc.report.paper import CITED, NETWORKS, ROWS, VALIDATED

MANUAL = Path(__file__).parents[2] / "notebooks" / "the_paper.ipynb"


def test_paper__the_manual_has_its_tables():
    text = MANUAL.read_text(encoding="utf-8")
    for name, found in NETWORKS.items():
        cells = (f"{mean:.4f} ± {std:.4f}" for mean, std in found)
        assert f"| {name} | {' | '.join(cells)} |" in text
    for name, accuracy, _ in ROWS:
        assert name in NETWORKS or f"| {name} | {accuracy:.4f} | " in text
    for method, rows in VALIDATED.items():
        for k, row in enumerate(rows, 1):
            cells = (f"{value:.3f}" for value in row)
            assert f"| {method} | {k} | {' | '.join(cells)} |" in text


def test_paper__cites_every_row_as_its_own():
    assert len(CITED) == len(ROWS) == 3 + 2 + 7 * 4 + 6
    assert {row.group for row in CITED} == {"cited"}
    assert {row.suite for row in CITED} == {"Outex_TC_00010"}
