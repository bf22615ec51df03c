"""Notebooks: what a real kernel is told to show."""

import re

import nbclient
import nbformat
import pytest

CELLS = {
    "imports": """
        import numpy as np, dsc
        patches = np.random.default_rng(0).random((3000, 7, 7), np.float32)
        options = dict(n_atoms=4, sparsity=2, n_iterations=3, n_angles=16)""",
    "learn": "model = dsc.learn(patches, **options)",
    "run": "model = dsc.learn(patches, run='run', **options);",
    "true": "_ = dsc.learn(patches, progress=True, **options)",
    "false": "_ = dsc.learn(patches, progress=False, **options)",
    "function": "_ = dsc.learn(patches, progress=lambda event: print(event.iteration), **options)",
    "fails": """
        try:
            dsc.learn(patches * np.nan, **options)
        except dsc.DscError as error:
            print('refused')""",
    "stopped": """
        class Stop(Exception): pass
        from dsc.dictionary import loop
        code_part = loop.code_part
        def stop(part, step):
            raise Stop
        loop.code_part = stop
        try:
            dsc.learn(patches, **options)
        except Stop:
            pass
        loop.code_part = code_part""",
    "many": """
        from dsc.dictionary import learn_many, LearnConfig
        _ = learn_many([(patches[:900], LearnConfig(**options))] * 2)""",
    "extract": """
        image = np.random.default_rng(1).random((60, 60), np.float32)
        stored = dsc.extract_patches(image, 'p.zarr', dsc.PatchConfig(diameter=7))""",
    "encode": "coded = model.encode(stored)",
    "reconstruct": "again = model.reconstruct(image)",
    "plan": "dsc.plan(patches, **options)",
    "model": "model",
    "patches": "stored",
    "coded": "coded",
    "plot": "model.plot()",
    "watch": "dsc.watch('run', follow=False)",
    "follow": "dsc.watch('run')",
    "estimator": "dsc.RotationalDictionaryLearning(3, n_angles=16, max_iter=1).fit(patches)",
    "client": """
        from distributed import Client
        with Client(processes=False, n_workers=1, dashboard_address=':0') as client:
            _ = dsc.learn(patches, **options)""",
}


class Listening(nbclient.NotebookClient):
    """Keeps what comes before a display is drawn anew."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.said = []

    def process_message(self, msg, cell, cell_index):
        self.said.append((cell_index, msg["msg_type"], msg["content"]))
        return super().process_message(msg, cell, cell_index)


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """(outputs by cell, messages by cell) of the cells in one kernel."""
    import textwrap

    cells = [nbformat.v4.new_code_cell(textwrap.dedent(code)) for code in CELLS.values()]
    notebook = nbformat.v4.new_notebook(cells=cells)
    folder = tmp_path_factory.mktemp("notebook")
    client = Listening(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    client.execute()
    outputs = {name: cell.outputs for name, cell in zip(CELLS, cells, strict=True)}
    said = {
        name: [(kind, content) for cell, kind, content in client.said if cell == number]
        for number, name in enumerate(CELLS)
    }
    return outputs, said


def html_of(output):
    return output["data"]["text/html"]


@pytest.mark.parametrize("name", ["learn", "run", "true", "client"])
def test_learn__shows_one_card_that_is_drawn_anew(shown, name):
    (output,) = shown[0][name]
    assert output["output_type"] == "display_data"
    html = html_of(output)
    assert 'src="data:image/png;base64,' in html
    assert "<svg" in html
    assert "<polyline" in html
    assert "ran on" in html
    assert "final pass of 3" in html  # the state at the end
    assert "in 4 passes" in html
    drawn = [c for kind, c in shown[1][name] if kind in ("display_data", "update_display_data")]
    assert len({content["transient"]["display_id"] for content in drawn}) == 1
    assert [kind for kind, _ in shown[1][name]].count("display_data") == 1
    assert len(drawn) >= 4  # the place, and every pass
    assert "<img" not in html_of(drawn[0])
    assert "running on" in html_of(drawn[0])  # the first sign of life


def test_learn__text_beside_the_card_is_short(shown):
    for outputs in shown[0].values():
        for output in outputs:
            assert len(output.get("data", {}).get("text/plain", "")) < 2000


def test_learn__on_the_active_client_says_so(shown):
    assert "the Dask cluster" in html_of(shown[0]["client"][0])


def test_learn__with_progress_false_shows_nothing(shown):
    assert shown[0]["false"] == []


def test_learn__with_a_function_shows_what_it_shows(shown):
    (output,) = shown[0]["function"]
    assert output["output_type"] == "stream"
    assert output["text"].split() == ["1", "2", "3", "3"]


def test_learn__of_many_shows_them_side_by_side(shown):
    (output,) = shown[0]["many"]
    assert html_of(output).count("<img") == 2
    assert "2 dictionaries" in html_of(output)


def test_learn__that_fails_leaves_no_bar_behind(shown):
    for name in ("fails", "stopped"):
        cards = [one for one in shown[0][name] if one["output_type"] == "display_data"]
        assert [html_of(card) for card in cards] in ([], [""])


@pytest.mark.parametrize("name", ["extract", "encode", "reconstruct"])
def test_short_work__leaves_no_clutter(shown, name):
    for output in shown[0][name]:
        assert output["output_type"] == "display_data"
        assert html_of(output) == ""
        assert output["data"].get("text/plain", "") == ""


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("model", "<polyline"),
        ("patches", "<img"),
        ("coded", "<rect"),
        ("estimator", "<img"),
        ("plan", "estimated time"),
    ],
)
def test_value__as_the_last_expression_is_a_card(shown, name, part):
    output = shown[0][name][-1]
    assert output["output_type"] == "execute_result"
    assert "dsc-card" in html_of(output)
    assert part in html_of(output)


def test_plot__is_a_image_without_magic(shown):
    (output,) = shown[0]["plot"]
    assert output["output_type"] == "execute_result"
    assert "image/png" in output["data"]


@pytest.mark.parametrize("name", ["watch", "follow"])
def test_watch__shows_the_card_of_a_run(shown, name):
    (output,) = shown[0][name]
    assert "<img" in html_of(output)
    assert "finished" in html_of(output)


def test_cards__need_nothing_from_outside_and_have_no_scripts(shown):
    for outputs in shown[0].values():
        for output in outputs:
            html = output.get("data", {}).get("text/html", "")
            assert "<script" not in html or "sk-" in html
            links = re.findall(r'(?:src|href)="([^"]*)"', html)
            assert all(link.startswith("data:image/png") for link in links)
