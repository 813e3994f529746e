"""The grammar: one command line to a tree. Anything outside the subset raises ShellUnsupported."""

from __future__ import annotations

from functools import lru_cache
from typing import NoReturn

from attrs import frozen


class ShellUnsupported(Exception):
    """The line uses something that is not understood here. The message says what, and never quotes the line."""


@frozen
class Literal:
    """Text as it stands; quoted text is not subject to patterns."""

    text: str
    quoted: bool


@frozen
class Variable:
    """``$name``, ``$?`` or ``$@``."""

    name: str
    quoted: bool


@frozen
class Substitution:
    """``$( … )``."""

    script: Script
    quoted: bool


@frozen
class Word:
    """One word; its parts are concatenated."""

    parts: tuple[Literal | Variable | Substitution, ...]


@frozen
class Redirection:
    """``fd>target`` or ``fd<target``; a target is ``&n``, ``&-`` or ``/dev/null``."""

    descriptor: int
    target: str


@frozen
class Simple:
    """Assignments, words and redirections."""

    assignments: tuple[tuple[str, Word], ...]
    words: tuple[Word, ...]
    redirections: tuple[Redirection, ...]


@frozen
class If:
    """``if … then … else … fi``; an elif is an If in the otherwise part."""

    condition: Script
    then: Script
    otherwise: Script | None


@frozen
class Case:
    """``case word in pattern) … ;; esac``; a pattern is literal text, or None for ``*``."""

    word: Word
    arms: tuple[tuple[tuple[str | None, ...], Script], ...]


@frozen
class Group:
    """``{ …; }``, or ``( … )`` in a subshell."""

    body: Script
    subshell: bool


@frozen
class Not:
    """``! command``."""

    command: Command


@frozen
class Script:
    """Commands in order, each with the operator before it: ``;``, ``&&`` or ``||``."""

    steps: tuple[tuple[str, Command], ...]


Command = Simple | If | Case | Group | Not

_OPERATORS = ("&&", "||", ";;", ";", "&", "|", "(", ")", "\n")
_RESERVED_UNSUPPORTED = ("for", "while", "until", "function", "select", "time", "[[", "coproc")
_ENDS = ("then", "else", "elif", "fi", "esac", "}", "do", "done")
_GLOB = "*?["


@lru_cache(maxsize=64)
def parse(line: str) -> Script:
    """Parse a whole line. Raises ShellUnsupported."""
    parser = _Parser(line)
    script = parser.script(())
    if not parser.at_end():
        parser.refuse("an unexpected operator")
    return script


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def refuse(self, what: str) -> NoReturn:
        raise ShellUnsupported(f"{what} at character {self.at + 1}")

    def at_end(self) -> bool:
        self._skip_blanks()
        return self.at >= len(self.text)

    def script(self, ends: tuple[str, ...]) -> Script:
        steps: list[tuple[str, Command]] = []
        operator = ";"
        while True:
            self._skip_newlines()
            if self.at >= len(self.text) or self._looking_at(")", ";;") or self._reserved() in ends:
                break
            steps.append((operator, self._command()))
            self._skip_blanks()
            operator = self._next_operator()
            if operator == "":
                break
        if operator in ("&&", "||"):
            self.refuse("an operator without a command after it")
        return Script(tuple(steps))

    def _next_operator(self) -> str:
        for operator in ("&&", "||"):
            if self._take(operator):
                return operator
        if self._looking_at(";;") or self._looking_at(")"):
            return ""
        if self._take(";") or self._take("\n"):
            return ";"
        if self._looking_at("&") or self._looking_at("|"):
            self.refuse("a background command or a pipeline")
        return ""

    def _command(self) -> Command:
        self._skip_blanks()
        word = self._reserved()
        if word == "!":
            self._expect_word("!")
            return Not(self._command())
        if word in _RESERVED_UNSUPPORTED:
            self.refuse(f"the reserved word {word}")
        if word in _ENDS:
            self.refuse(f"an unexpected {word}")
        if word == "if":
            return self._if("if")
        if word == "case":
            return self._case()
        if word == "{":
            self._expect_word("{")
            body = self.script(("}",))
            self._expect_word("}")
            return self._alone(Group(body, subshell=False))
        if self._take("("):
            body = self.script(())
            if not self._take(")"):
                self.refuse("an open parenthesis")
            return self._alone(Group(body, subshell=True))
        return self._simple()

    def _alone(self, command: Command) -> Command:
        self._skip_blanks()
        if self.at < len(self.text) and not self._looking_at(*_OPERATORS):
            self.refuse("a redirection or a word after a compound command")
        return command

    def _if(self, keyword: str) -> If:
        self._expect_word(keyword)
        condition = self.script(("then",))
        self._expect_word("then")
        then = self.script(("else", "elif", "fi"))
        if self._reserved() == "elif":
            return If(condition, then, Script(((";", self._if("elif")),)))
        otherwise = None
        if self._reserved() == "else":
            self._expect_word("else")
            otherwise = self.script(("fi",))
        self._expect_word("fi")
        self._alone(Group(then, subshell=False))
        return If(condition, then, otherwise)

    def _case(self) -> Case:
        self._expect_word("case")
        self._skip_blanks()
        word = self._word()
        self._skip_newlines()
        self._expect_word("in")
        arms = []
        while True:
            self._skip_newlines()
            if self._reserved() == "esac":
                break
            self._take("(")
            arms.append((self._patterns(), self.script(("esac",))))
            if not self._take(";;"):
                self._skip_newlines()
                break
        self._expect_word("esac")
        self._alone(Group(Script(()), subshell=False))
        return Case(word, tuple(arms))

    def _patterns(self) -> tuple[str | None, ...]:
        patterns = [self._pattern()]
        while self._take("|"):
            patterns.append(self._pattern())
        if not self._take(")"):
            self.refuse("a pattern without its parenthesis")
        return tuple(patterns)

    def _pattern(self) -> str | None:
        self._skip_blanks()
        word = self._word(pattern=True)
        self._skip_blanks()
        if word == Word((Literal("*", quoted=False),)):
            return None
        text = ""
        for part in word.parts:
            if not isinstance(part, Literal) or (not part.quoted and any(one in part.text for one in _GLOB)):
                self.refuse("a pattern that is neither plain text nor *")
            text += part.text
        return text

    def _simple(self) -> Simple:
        assignments: list[tuple[str, Word]] = []
        words: list[Word] = []
        redirections: list[Redirection] = []
        while True:
            self._skip_blanks()
            if self.at >= len(self.text) or self._looking_at(*_OPERATORS):
                break
            redirection = self._redirection()
            if redirection is not None:
                redirections.append(redirection)
                continue
            name = self._assignment_name() if not words else None
            if name is not None:
                self.at += len(name) + 1
                assignments.append((name, self._word(assignment=True)))
            else:
                words.append(self._word())
        if assignments and words:
            self.refuse("a command with its own variables")
        if not (assignments or words or redirections):
            self.refuse("an empty command")
        return Simple(tuple(assignments), tuple(words), tuple(redirections))

    def _assignment_name(self) -> str | None:
        end = self.at
        while end < len(self.text) and (self.text[end].isascii() and (self.text[end].isalnum() or self.text[end] == "_")):
            end += 1
        name = self.text[self.at : end]
        if name and not name[0].isdigit() and self.text[end : end + 1] == "=":
            return name
        return None

    def _redirection(self) -> Redirection | None:
        at = self.at
        while at < len(self.text) and self.text[at] in "0123456789":
            at += 1
        if self.text[at : at + 1] not in ("<", ">"):
            return None
        number, symbol = self.text[self.at : at], self.text[at]
        self.at = at + 1
        if self.text[self.at : self.at + 1] in (">", "<", "|") or len(number) > 1:
            self.refuse("a redirection of another kind")
        descriptor = int(number) if number else (1 if symbol == ">" else 0)
        if self._take("&"):
            target = self.text[self.at : self.at + 1]
            self.at += 1
            if target not in tuple("0123456789-") or not self._at_word_end():
                self.refuse("a redirection to a word")
            return Redirection(descriptor, f"&{target}")
        self._skip_blanks()
        if self._word() != Word((Literal("/dev/null", quoted=False),)):
            self.refuse("a redirection to a file")
        return Redirection(descriptor, "/dev/null")

    def _at_word_end(self) -> bool:
        return self.at >= len(self.text) or self.text[self.at] in " \t\n;&|()<>"

    def _word(self, *, assignment: bool = False, pattern: bool = False) -> Word:
        parts: list[Literal | Variable | Substitution] = []
        start = self.at
        while not self._at_word_end():
            character = self.text[self.at]
            if character == "'":
                parts.append(Literal(self._single_quoted(), quoted=True))
            elif character == '"':
                parts += self._double_quoted()
            elif character == "\\":
                parts.append(Literal(self._escaped(), quoted=True))
            elif character == "$":
                parts.append(self._dollar(quoted=False))
            elif character in "`<>":
                self.refuse("backquotes or a redirection inside a word")
            else:
                self._plain(parts, first=self.at == start, allow_glob=assignment or pattern)
        if self.at == start and not assignment:
            self.refuse("a missing word")
        return Word(tuple(parts))

    def _plain(self, parts: list[Literal | Variable | Substitution], *, first: bool, allow_glob: bool) -> None:
        character = self.text[self.at]
        is_test = character == "[" and first and self.text[self.at + 1 : self.at + 2] in (" ", "\t")
        if (character in _GLOB and not allow_glob and not is_test) or character in "{}" or (character == "~" and first):
            self.refuse("an unquoted pattern, brace or tilde")
        if character == "#" and first:
            self.refuse("a comment")
        if parts and isinstance(parts[-1], Literal) and not parts[-1].quoted:
            parts[-1] = Literal(parts[-1].text + character, quoted=False)
        else:
            parts.append(Literal(character, quoted=False))
        self.at += 1

    def _single_quoted(self) -> str:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            self.refuse("an open quote")
        text = self.text[self.at + 1 : end]
        self.at = end + 1
        return text

    def _escaped(self) -> str:
        text = self.text[self.at + 1 : self.at + 2]
        if text in ("", "\n"):
            self.refuse("a continued line")
        self.at += 2
        return text

    def _double_quoted(self) -> list[Literal | Variable | Substitution]:
        parts: list[Literal | Variable | Substitution] = [Literal("", quoted=True)]
        self.at += 1
        while True:
            character = self.text[self.at : self.at + 1]
            if character == "":
                self.refuse("an open quote")
            if character == '"':
                self.at += 1
                return parts
            if character == "`":
                self.refuse("backquotes")
            if character == "$" and self._begins_expansion():
                parts.append(self._dollar(quoted=True))
                continue
            if character == "\\" and self.text[self.at + 1 : self.at + 2] in tuple('$`"\\'):
                self.at += 1
                character = self.text[self.at]
            elif character == "\\" and self.text[self.at + 1 : self.at + 2] == "\n":
                self.refuse("a continued line")
            parts.append(Literal(character, quoted=True))
            self.at += 1

    def _begins_expansion(self) -> bool:
        after = self.text[self.at + 1 : self.at + 2]
        return after.isalnum() or after in tuple("_({?@*#$!-'\"") if after else False

    def _dollar(self, *, quoted: bool) -> Variable | Substitution:
        rest = self.text[self.at + 1 :]
        if rest.startswith("(("):
            self.refuse("arithmetic")
        if rest.startswith("("):
            self.at += 2
            script = self.script(())
            if not self._take(")"):
                self.refuse("an open substitution")
            return Substitution(script, quoted)
        if rest.startswith("?"):
            self.at += 2
            return Variable("?", quoted)
        if rest.startswith("@"):
            if not quoted:
                self.refuse("an unquoted $@")
            self.at += 2
            return Variable("@", quoted)
        braced = rest.startswith("{")
        name = ""
        for character in rest[1 if braced else 0 :]:
            if not (character.isascii() and (character.isalnum() or character == "_")):
                break
            name += character
        if not name or name[0].isdigit() or (braced and rest[len(name) + 1 : len(name) + 2] != "}"):
            self.refuse("an expansion other than a plain variable")
        self.at += 1 + len(name) + (2 if braced else 0)
        return Variable(name, quoted)

    def _reserved(self) -> str:
        """The plain word at this place, as far as reserved words are concerned."""
        self._skip_blanks()
        end = self.at
        while end < len(self.text) and self.text[end] not in " \t\n;&|()<>\"'\\$`":
            end += 1
        if end < len(self.text) and self.text[end] in "\"'\\$`":
            return ""
        return self.text[self.at : end]

    def _expect_word(self, word: str) -> None:
        if self._reserved() != word:
            self.refuse(f"a missing {word}")
        self.at += len(word)

    def _skip_blanks(self) -> None:
        while self.text[self.at : self.at + 1] in (" ", "\t"):
            self.at += 1

    def _skip_newlines(self) -> None:
        self._skip_blanks()
        while self.text[self.at : self.at + 1] == "\n":
            self.at += 1
            self._skip_blanks()

    def _looking_at(self, *texts: str) -> bool:
        return any(self.text.startswith(one, self.at) for one in texts)

    def _take(self, text: str) -> bool:
        self._skip_blanks()
        if not self._looking_at(text) or (text == ";" and self._looking_at(";;")):
            return False
        self.at += len(text)
        return True
