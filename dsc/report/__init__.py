"""Pages for people: facts and figures in a template make one self-contained HTML file."""

from dsc.report.demo import closing_words, write_demo
from dsc.report.experiments import check_free, write_result, write_summary
from dsc.report.learn import write_report
from dsc.report.maps import class_colours, write_maps
from dsc.report.sweep import sweep_table, write_sweep_report
from dsc.report.texture import compared_method, write_texture_report

__all__ = [
    "check_free",
    "class_colours",
    "closing_words",
    "compared_method",
    "sweep_table",
    "write_demo",
    "write_maps",
    "write_report",
    "write_result",
    "write_summary",
    "write_sweep_report",
    "write_texture_report",
]
