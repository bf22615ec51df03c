"""Pages for people: facts and figures in a template make one self-contained HTML file."""

from dsc.report.application import Application, check_application, write_application
from dsc.report.demo import closing_words, write_demo
from dsc.report.experiments import check_free, plot_figure, write_result, write_summary
from dsc.report.images import direction_wheel, paint_directions, strength_of
from dsc.report.learn import write_report
from dsc.report.maps import map_files, painted_file, write_maps
from dsc.report.sweep import sweep_table, write_sweep_report
from dsc.report.texture import compared_method, write_texture_report
from dsc.report.watch import make_server, watch
