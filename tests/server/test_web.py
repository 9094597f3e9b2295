"""The chat page in headless Chromium."""
import json
import os
import shutil

import pytest

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(not BROWSER, reason="there is no chromium; on Debian: apt-get install chromium")


@pytest.fixture(scope="module")
def server():
    from conftest import Server

    s = Server()
    yield s
    s.stop()


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as p:
        b = p.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield b
        b.close()


@pytest.fixture
def page(browser, server):
    context = browser.new_context(viewport={"width": 1100, "height": 800})
    page = context.new_page()
    page.problems = []
    page.on("pageerror", lambda e: page.problems.append(str(e)))
    page.on("console", lambda m: page.problems.append(m.text) if m.type == "error" else None)
    page.requests = []
    page.on("request", lambda r: page.requests.append(r.url))
    page.goto(server.url + "/")
    page.locator("#model", has_text="tales-9m").wait_for()
    yield page
    assert page.problems == []
    assert all(u.startswith((server.url, "data:")) for u in page.requests)
    context.close()


def ask(page, text, **samplers):
    page.evaluate("(s) => { settings.samplers = s; }", {"max_tokens": 12, "seed": 1, **samplers})
    page.fill("#prompt", text)
    page.press("#prompt", "Enter")


def finished(page):
    page.wait_for_selector("#send:not([hidden])", timeout=60000)


def test_streams_an_answer_and_keeps_it(page):
    ask(page, "Tell me about a fox.")
    finished(page)
    assert page.locator(".message.user .body").inner_text() == "Tell me about a fox."
    answer = page.locator(".message.assistant .body").inner_text()
    assert answer.strip()
    assert "12 tokens" in page.locator(".message.assistant .tools").inner_text()
    assert "tokens/s" in page.locator("#speed").inner_text()
    assert page.locator("#context-text").inner_text().endswith("/ 1024")
    page.reload()
    page.locator("#chats .open").first.click()
    assert page.locator(".message.assistant .body").inner_text() == answer


def test_regenerate_edit_and_branch(page):
    ask(page, "First question")
    finished(page)
    page.get_by_role("button", name="Answer again").click()
    finished(page)
    assert "2/2" in page.locator(".message.assistant .tools").inner_text()
    page.get_by_role("button", name="Earlier version").click()
    assert "1/2" in page.locator(".message.assistant .tools").inner_text()
    page.get_by_role("button", name="Edit this message").click()
    page.locator(".message textarea").fill("Second question")
    page.get_by_role("button", name="Send the edited message").click()
    finished(page)
    assert page.locator(".message.user .body").inner_text() == "Second question"
    assert "2/2" in page.locator(".message.user .tools").inner_text()


def test_stop(page):
    # An answer that takes a while even on a fast machine.
    ask(page, "A long story", max_tokens=900, ignore_eos=True, dry_multiplier=1)
    page.wait_for_selector("#stop:not([hidden])", timeout=60000)
    page.keyboard.press("Escape")
    finished(page)
    assert page.locator(".message.assistant .error").count() == 0


def test_nothing_a_model_writes_becomes_markup(page):
    evil = ("<img src=x onerror=\"window.hacked=1\"> <script>window.hacked=1</script> [a](javascript:alert(1)) "
            "[b](https://example.com/\"onmouseover=\"x) **bold** `<b>`\n\n```html\n<script>window.hacked=1</script>\n```\n"
            "| a | b |\n| - | - |\n| <i>x</i> | y |\n\n- one\n  - two\n\n> quote")
    page.evaluate("(text) => { addNode(addNode(null, 'user', text).id, 'assistant', text); showMessages(); }", evil)
    page.wait_for_timeout(100)
    assert page.evaluate("window.hacked") is None
    body = page.locator(".message.assistant .body")
    assert body.locator("img, script, i, b").count() == 0
    assert body.locator("a").evaluate_all("links => links.map(a => a.protocol)") == ["https:"]
    assert body.locator("strong").inner_text() == "bold"
    assert body.locator("table td").count() == 2 and body.locator("li").count() == 2
    assert body.locator(".code pre").inner_text() == "<script>window.hacked=1</script>"


def test_reasoning_is_folded(page):
    page.evaluate("""() => { const n = addNode(addNode(null, 'user', 'q').id, 'assistant', 'answer');
        n.reasoning = 'hidden thought'; showMessages(); }""")
    box = page.locator("details.reasoning")
    assert not box.locator(".text").is_visible()
    box.locator("summary").click()
    assert box.locator(".text").inner_text() == "hidden thought"


def test_code_is_highlighted(page):
    page.evaluate("addNode(addNode(null, 'user', 'q').id, 'assistant', '```py\\ndef f(): # c\\n  return 1\\n```'); showMessages();")
    assert page.locator(".code .kw").all_inner_texts() == ["def", "return"]
    assert page.locator(".code .com").inner_text() == "# c"


def test_errors_are_shown(page):
    page.evaluate("settings.samplers = {temperature: 99}")
    page.fill("#prompt", "hello")
    page.click("#send")
    page.wait_for_selector("[role=alert]")
    assert "temperature" in page.locator("[role=alert]").inner_text()
    page.problems.clear()  # the browser notes the 400


def test_keyboard_names_and_themes(page):
    for control in page.query_selector_all("button, input, textarea, progress"):
        name = control.evaluate("e => e.getAttribute('aria-label') || e.textContent.trim() || e.closest('label')?.textContent || ''")
        assert name, control.evaluate("e => e.outerHTML")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    colors = set()
    for _ in range(2):
        page.click("#theme")
        colors.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert len(colors) == 2
    page.click("#settings-button")
    page.fill("#s-temperature", "0.5")
    page.press("#s-temperature", "Tab")
    assert json.loads(page.evaluate("localStorage['exl3.settings']"))["samplers"]["temperature"] == 0.5


def test_phone_width(page):
    page.set_viewport_size({"width": 360, "height": 640})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert not page.locator("#sidebar").is_visible()
    page.click("#menu")
    page.wait_for_selector("#new-chat", state="visible")
    page.keyboard.press("Escape")
    if os.environ.get("EXL3_SCREENSHOTS"):
        page.screenshot(path=os.path.join(os.environ["EXL3_SCREENSHOTS"], "phone.png"))
