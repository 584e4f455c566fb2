"""The page that a student gets back: points, what the public checks said, and no hidden input.

One file without scripts or anything from another site. All that a student wrote, and all that the
student's code said, is escaped; a content policy in the page forbids scripts as well.
"""

import unicodedata
from html import escape

from gradebox.assignment import Assignment
from gradebox.grades import STATUS, Grade, nothing_earned, rounded, why
from gradebox.result import QuestionResult
from gradebox.words import quoted

LONGEST = 2_000  # letters of one message

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; --line: #8a8f98; --page: #ffffff; --ink: #1b1f24 }}
:root {{ --quiet: #4f5662; --bad: #9c2b12; --good: #1b6238; --link: #0b4f9e }}
@media (prefers-color-scheme: dark) {{
:root {{ --page: #15181c; --ink: #e8eaed }}
:root {{ --quiet: #b4bac4; --bad: #ffab91; --good: #8fd6a8; --link: #9cc4ff }} }}
html {{ background: var(--page); color: var(--ink) }}
a {{ color: var(--link) }}
body {{ font: 1rem/1.5 system-ui, sans-serif; max-width: 46rem; margin: 0 auto; padding: 1rem }}
h1 {{ font-size: 1.5rem; margin-bottom: 0 }}
h2 {{ font-size: 1.15rem; margin: 2rem 0 .25rem }}
p {{ margin: .35rem 0 }}
.quiet {{ color: var(--quiet) }}
.total {{ font-size: 1.25rem; font-weight: 600 }}
table {{ border-collapse: collapse; width: 100%; margin-top: .75rem }}
th, td {{ text-align: left; padding: .3rem .6rem .3rem 0; border-bottom: 1px solid var(--line) }}
td.number, th.number {{ text-align: right; white-space: nowrap }}
ul {{ padding-left: 1.2rem; margin: .35rem 0 }}
.failed {{ color: var(--bad); font-weight: 600 }}
.passed {{ color: var(--good); font-weight: 600 }}
pre {{ white-space: pre-wrap; overflow-wrap: anywhere; margin: .2rem 0 .6rem; font-size: .9rem }}
.comment {{ border: 1px solid var(--line); border-radius: 4px }}
.comment {{ padding: .5rem .75rem; min-height: 3rem }}
</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""

WORDS = {
    "ok": "",
    "missing": "No answer was found. Was its cell deleted, or the name changed?",
    "failed": "Your code for this question raised an error, or did not come to an end.",
    "untouched": "The cell of this question is as it was handed out.",
    "manual": "",
    "not-marked": "This question was not marked.",
}


def page(assignment: Assignment, grade: Grade) -> str:
    """The whole page of one student."""
    who = clean(grade.person.name or grade.person.id)
    body = [f"<h1>{clean(assignment.name)}</h1>", f'<p class="quiet">{who}</p>', *_summary(grade)]
    if grade.questions:
        titles = {question.id: question.title for question in assignment.questions}
        body += _table(grade, titles)
        for one in grade.questions:
            body += _question(grade, one, titles.get(one.id, one.title))
        body += _stopped(grade)
    return PAGE.format(title=f"{clean(assignment.name)}: {who}", body="\n".join(body))


def _summary(grade: Grade) -> list[str]:
    most = rounded(sum(one.possible for one in grade.questions))
    lines = []
    if grade.questions and grade.total is not None:
        lines.append(f'<p class="total">{grade.total} of {most} points</p>')
    elif grade.questions:
        waiting = rounded(sum(one.possible for one in grade.questions if one.id in grade.open))
        lines.append(f'<p class="total">{rounded(grade.earned)} of {most} points so far</p>')
        lines.append(f"<p>{waiting} of the points are given by hand and are still open.</p>")
    elif grade.chosen:
        reason = clean(why(grade.chosen))
        words = STATUS.get(grade.status, "not marked")
        lines.append(f'<p class="total">Not marked: {words}</p>')
        lines.append(f"<p>{reason}</p>" if grade.status != "not-marked" else "")
    else:
        lines.append('<p class="total">Nothing was handed in.</p>')
    if grade.days_late:
        days = "one day" if grade.days_late == 1 else f"{grade.days_late} days"
        lost = f"{grade.lost_percent:g} per cent of the points are taken off"
        lines.append(f"<p>Handed in late, by {days} that began: {lost}.</p>")
    if grade.chosen and len(grade.attempts) > 1:
        which, of = grade.chosen.found.attempt, len(grade.attempts)
        file = clean(quoted(grade.chosen.found.file))
        lines.append(f'<p class="quiet">Attempt {which} of {of} counts: {file}.</p>')
    said = [note for note in grade.notes if note.startswith("attempt ")]  # of the other attempts
    for reason in filter(None, [*said, nothing_earned(grade)]):
        lines.append(f"<p>{clean(reason[0].upper() + reason[1:])}.</p>")
    return [line for line in lines if line]


def _table(grade: Grade, titles: dict[str, str]) -> list[str]:
    lines = [
        "<table><thead><tr><th scope='col'>Question</th>"
        "<th scope='col' class='number'>Points</th></tr></thead><tbody>"
    ]
    for one in grade.questions:
        title = clean(titles.get(one.id, one.title))
        lines.append(
            f'<tr><th scope="row"><a href="#{anchor(one)}">{clean(one.id)}: {title}</a></th>'
            f'<td class="number">{_points(grade, one)}</td></tr>'
        )
    return [*lines, "</tbody></table>"]


def _points(grade: Grade, one: QuestionResult) -> str:
    points = grade.points(one)
    if points is None:
        return f"not marked yet, {rounded(one.possible)} points"
    return f"{rounded(points)} of {rounded(one.possible)} points"


def anchor(one: QuestionResult) -> str:
    return "question-" + "".join(c if c.isascii() and c.isalnum() else "-" for c in one.id)


def _question(grade: Grade, one: QuestionResult, title: str) -> list[str]:
    lines = [f'<section aria-labelledby="{anchor(one)}">']
    lines.append(
        f'<h2 id="{anchor(one)}">{clean(one.id)}: {clean(title)}, {_points(grade, one)}</h2>'
    )
    if one.manual:
        given = grade.by_hand.get(one.id)
        waiting = WORDS[one.status] or "A person marks this one."
        lines.append(f"<p>{'Marked by hand.' if given else waiting}</p>")
        lines.append('<p class="quiet">Comment:</p>')
        said = clean(given.comment) if given else ""
        lines.append(
            f'<div class="comment" role="note" aria-label="Comment"><pre>{said}</pre></div>'
        )
        return [*lines, "</section>"]
    if WORDS.get(one.status):
        lines.append(f"<p>{WORDS[one.status]}</p>")
        lines.append(f"<pre>{clean(one.message)}</pre>" if one.message else "")
    public = [case for case in one.cases if case.public]
    if public:
        lines.append("<ul>")
        for at, case in enumerate(public, 1):
            word = "passed" if case.passed else "failed"
            lines.append(f'<li>Public check {at}: <span class="{word}">{word}</span>')
            if case.message and not case.passed:
                lines.append(f"<pre>{clean(case.message)}</pre>")
            lines.append("</li>")
        lines.append("</ul>")
    if said := hidden_tests(one):
        lines.append(f"<p>{clean(said)}</p>")
    if one.hint:
        lines.append(f"<p>Think about this: {clean(one.hint)}</p>")
    return [*filter(None, lines), "</section>"]


def hidden_tests(one: QuestionResult) -> str:
    """How many passed; where all public checks did, also the name of the first that did not."""
    hidden = [case for case in one.cases if not case.public]
    failed = [case for case in hidden if not case.passed]
    if not hidden:
        return ""
    said = f"Hidden tests: {len(hidden) - len(failed)} of {len(hidden)} passed."
    if failed and failed[0].name and all(case.passed for case in one.cases if case.public):
        said += f" The first that did not: {failed[0].name}."
    return said


def _stopped(grade: Grade) -> list[str]:
    """The cells that did not run to their end when the notebook was marked."""
    result = grade.chosen.result if grade.chosen else None
    if not result or not result.stopped:
        return []
    rows = [f"<li><pre>{clean(one)}</pre></li>" for one in result.stopped]
    said = (
        "Your notebook was run from its first cell to its last, without a network, without other "
        "files and for a limited time. These cells stopped; what they define may be missing."
    )
    return [
        '<section aria-labelledby="stopped"><h2 id="stopped">Cells that stopped</h2>',
        f"<p>{said}</p>",
        "<ul>",
        *rows,
        "</ul></section>",
    ]


def clean(text: str) -> str:
    """Text that somebody else wrote, as HTML: cut, escaped, and without characters that turn the
    direction of writing round or control a terminal."""
    text = text if len(text) <= LONGEST else text[:LONGEST] + " [...]"
    kept = (c for c in text if c in "\n\t" or unicodedata.category(c) not in {"Cc", "Cf", "Cs"})
    return escape("".join(kept), quote=True)
