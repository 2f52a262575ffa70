"""The leaderboard from the records: its page, and the tables and figures of docs/leaderboard.md.

    python benchmarks/leaderboard.py [--check] [--records FOLDER] [--page FILE]

With --check nothing is written: every line of the record files is checked, and what is wrong is
printed with its file and number.
"""

from __future__ import annotations

from pathlib import Path

import cyclopts

from published import RECORDS, insert
from thonecls.benchmark import read_results
from thonecls.benchmark.board_figures import draw_costs, draw_ranks, save_plain
from thonecls.benchmark.board_page import choice_markdown, summary_markdown, write_leaderboard
from thonecls.benchmark.checking import check_records
from thonecls.benchmark.leaderboard import rankings, runs_of_board
from thonecls.benchmark.records import lines_of

PAGE = Path("docs/leaderboard.md")
FIGURES = Path("docs/figures")
SHOWN = ("scattered", "half", "plot")  # mechanisms with figures in the docs


def main(
    *, check: bool = False, records: Path = RECORDS, page: Path = Path("runs/leaderboard.html")
) -> int:
    """Write the page and the tables, or check the records."""
    wrong = check_records(records)
    for line in wrong:
        print(line)
    files = len({path for path, _, _ in lines_of(records)})
    lines = sum(1 for _ in lines_of(records))
    print(f"{lines} lines in {files} files of {records}: {len(wrong) or 'nothing'} wrong")
    if check or wrong:
        return 1 if wrong else 0
    results = read_results(records)
    print(write_leaderboard(results, page))
    insert(PAGE, "leaderboard", summary_markdown(results))
    insert(PAGE, "choice", choice_markdown(results))
    runs = runs_of_board(results)
    for mechanism in SHOWN:
        for ranking in rankings(runs, mechanism)[:1]:
            save_plain(draw_ranks(ranking), FIGURES / f"ranks-{mechanism}.png")
            save_plain(draw_costs(ranking), FIGURES / f"costs-{mechanism}.png")
    return 0


if __name__ == "__main__":
    raise SystemExit(cyclopts.run(main))
