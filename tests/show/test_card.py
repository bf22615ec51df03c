"""Cards: what is on them, and that words from outside stay words."""

import base64
import io
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from PIL import Image

import dsc
from dsc.dictionary.cards import MOST_CARDS
from dsc.estimators import NotFitted
from dsc.show import Card, Meter, Place, Pulse, Stage, duration, events, listener_of
from dsc.texture import TextureModel

EVIL = ("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</style></section>&lt;")


class Tags(HTMLParser):
    """The tags of a page, and the words between them."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.words = [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.words.append(data)


def image_of(html):
    """The first image inside a page."""
    data = re.search(r"data:image/png;base64,([A-Za-z0-9+/=]+)", html)[1]
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))


# --- a card -------------------------------------------------------------------------------------


@pytest.mark.parametrize("evil", EVIL)
def test_card__words_from_outside_stay_words(evil):
    def card_of(word, *cards):
        return Card(
            word,
            note=word,
            numbers={word: word},
            curve=(2.0, 1.0),
            image=np.zeros((2, 2), np.uint8),
            bars=(1, 2),
            alert=word,
            progress=(0.5, word),
            cards=cards,
        )

    found = Tags(card_of(evil, card_of(evil)).html())
    expected = Tags(card_of("a", card_of("a")).html())
    assert found.tags == expected.tags
    assert [name for name, _ in found.attributes] == [name for name, _ in expected.attributes]
    assert found.words.count(evil) == 2 * 6


def test_card__leaves_out_what_is_empty():
    html = Card("a title").html()
    for tag in ("<img", "<svg", "<dl", 'dsc-alert"', 'dsc-track"', 'dsc-cards"'):
        assert tag not in html
    assert "a title" in html


def test_card__has_the_image_to_the_bit():
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, 2)).astype(np.uint8)
    np.testing.assert_array_equal(image_of(Card("a", image=pixels).html()), pixels)


@pytest.mark.parametrize("curve", [(1.0,), (0.0, 0.0), (5.0, 1e-9), tuple(range(1000, 0, -1))])
def test_card__curve_stays_inside_its_box(curve):
    pairs = [tuple(map(float, pair.split(","))) for pair in Card("a", curve=curve).points.split()]
    assert len(pairs) == len(curve)
    assert all(0 <= x <= 320 and 0 <= y <= 110 for x, y in pairs)
    assert [x for x, _ in pairs] == sorted(x for x, _ in pairs)


@pytest.mark.parametrize("bars", [(0,), (0, 0), (3, 1, 2), range(500)])
def test_card__bars_fall_and_stay_inside_their_box(bars):
    card = Card("a", bars=tuple(bars))
    heights = [height for _, _, height in card.columns]
    assert heights == sorted(heights, reverse=True)
    assert all(0 <= y <= y + height <= 110 for _, y, height in card.columns)
    assert all(0 <= x <= x + card.column_width <= 320 for x, _, _ in card.columns)


def test_card__as_text_is_short():
    """A notebook keeps the text beside the HTML."""
    card = Card("a", curve=range(10**4), bars=range(10**4), image=np.zeros((900, 900), np.uint8))
    assert len(repr(card)) < 2000


# --- what is shown as a card --------------------------------------------------------------------


@pytest.fixture(scope="module")
def patches():
    return np.random.default_rng(3).random((500, 7, 7), np.float32)


@pytest.fixture(scope="module")
def model(patches):
    return dsc.learn(patches, 4, 2, n_iterations=2, n_angles=16, progress=False)


def test_dictionary__shows_atoms_curve_and_use(model):
    found = Tags(model._repr_html_())
    assert found.tags.count("img") == 1
    assert found.tags.count("polyline") == 1
    assert found.tags.count("rect") == 4


def test_patches__show_some_of_them_and_their_number(patches, tmp_path):
    stored = dsc.extract_patches(
        patches[0].repeat(6, 0).repeat(6, 1), tmp_path / "p", dsc.PatchConfig(diameter=5)
    )
    for source in (dsc.ArrayPatches(patches), stored):
        html = source._repr_html_()
        assert f"{source.n_patches:,}" in html
        assert "<img" in html


def test_codes__show_how_often_atoms_are_used(model, patches, tmp_path):
    memory, stored = model.encode(patches), model.encode(patches, tmp_path / "codes.zarr")
    assert "500" in memory.codes._repr_html_()
    assert "<rect" in memory._repr_html_()
    assert "codes.zarr" in stored._repr_html_()
    for coded in (memory, stored):
        assert f"{coded.mse:.4g}" in coded._repr_html_()


def test_estimators__show_a_card_once_they_are_fitted(patches):
    estimator = dsc.RotationalDictionaryLearning(n_components=3, max_iter=1, n_angles=16)
    before = estimator._repr_mimebundle_()
    assert "dsc-card" not in before.get("text/html", "")
    after = estimator.fit(patches)._repr_mimebundle_()
    assert "dsc-card" in after["text/html"]
    assert "<img" in after["text/html"]
    assert after["text/plain"] == repr(estimator)


@pytest.fixture(scope="module")
def classifier():
    rng = np.random.default_rng(0)
    images = [rng.random((24, 24), np.float32) for _ in range(6)]
    labels = [*EVIL[:2], "plain"] * 2
    made = dsc.TextureClassifier(n_components=2, diameter=5, max_iter=1, patches_per_image=30)
    return made.fit(images, labels)


def test_textures__show_every_class_under_its_name_and_names_do_no_harm(classifier, tmp_path):
    classifier.save(tmp_path / "model.zarr")
    model = TextureModel.load(tmp_path / "model.zarr")
    for html in (model._repr_html_(), classifier._repr_mimebundle_()["text/html"]):
        found = Tags(html)
        assert "script" not in found.tags
        assert found.tags.count("img") == 3
        assert "onerror" not in dict(found.attributes)
        assert {*EVIL[:2], "plain"} <= set(found.words)


def test_textures__before_fit_there_is_no_card():
    estimator = dsc.TextureClassifier()
    assert "dsc-card" not in estimator._repr_mimebundle_().get("text/html", "")
    with pytest.raises(NotFitted):
        estimator.predict([np.zeros((30, 30))])


def test_cards__of_very_many_dictionaries_say_how_many_are_not_shown(patches):
    from dsc.dictionary import learn_many
    from dsc.dictionary.config import LearnConfig

    shown = []
    config = LearnConfig(n_atoms=2, sparsity=1, n_iterations=1, n_angles=8)
    n_problems = MOST_CARDS + 2
    learn_many([(patches[:20], config)] * n_problems, progress=lambda e: shown.append(e.card()))
    assert f"{n_problems} dictionaries" in shown[-1].title
    assert len(shown[-1].cards) == MOST_CARDS + 1
    assert shown[-1].cards[-1].title == "and 2 more"


# --- events -------------------------------------------------------------------------------------


class Clock:
    """Time that passes when it is told to."""

    now = 100.0

    def perf_counter(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(events, "time", clock)
    return clock


def test_meter__of_any_three_pulses_the_last_is_a_second_after_the_first(clock):
    heard = []
    meter = Meter(lambda event: heard.append((clock.now, event)))
    rng = np.random.default_rng(0)
    for stage in range(20):
        meter.begin(Stage(str(stage), 1000))
        for done in range(0, 1000, 50):
            clock.now += rng.exponential(0.1)
            meter.show(done)
    times = [when for when, _ in heard]
    assert len(heard) > 20
    assert all(c - a >= 1 for a, c in zip(times, times[2:], strict=False))


def test_meter__with_more_listeners_keeps_the_pace(clock):
    heard = []
    meter = Meter(heard.append)
    for number in range(10):  # such as the steps of fitting textures
        meter = meter.also([lambda event: None]) if number else meter
        meter.begin(Stage(str(number), 10))
        clock.now += 0.01
    assert len(heard) <= 2


def test_pulse__says_the_pace_and_what_is_left_of_all_rounds():
    pulse = Pulse(Stage("iteration 2 of 3", 1000, 1, 4), 500, 10.0)
    assert pulse.patches_per_second == 50
    assert pulse.seconds_left == pytest.approx(2.5 * 1000 / 50)
    share, text = pulse.bar()
    assert share == pytest.approx(1.5 / 4)
    assert text == "iteration 2 of 3: 50 patches/s, 50 s left"


def test_pulse__before_the_first_patch_promises_nothing():
    share, text = Pulse(Stage("iteration 1 of 3", 1000, 0, 4), 0, 10.0).bar()
    assert share == 0
    assert text == "iteration 1 of 3"


def test_place__has_a_line_and_no_bar():
    assert Place("2 threads").line() == "running on 2 threads"
    assert Place("2 threads").bar() is None


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 s"), (119, "119 s"), (120, "2 min"), (7199, "120 min")]
)
def test_duration__is_for_people(seconds, text):
    assert duration(seconds) == text


def test_listener__none_outside_of_a_notebook_is_nobody():
    assert listener_of(None) == ()
    assert listener_of(False) == ()
    assert len(listener_of(True)) == 1
