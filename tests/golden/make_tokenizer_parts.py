#!/usr/bin/env python3
"""Writes data/tokenizer-parts.json: what the Hugging Face tokenizers library makes of each component
of a tokenizer.json and of small whole tokenizers.

    pip install tokenizers==0.22.2 && python3 make_tokenizer_parts.py

All texts and vocabularies are made up here."""
import itertools
import json
import pathlib

import tokenizers
from tokenizers import Tokenizer


def whole(model, **stages):
    base = dict(version="1.0", truncation=None, padding=None, added_tokens=[], normalizer=None,
                pre_tokenizer=None, post_processor=None, decoder=None, model=model)
    base.update(stages)
    return base


def any_model():
    return dict(type="WordLevel", vocab={"a": 0, "<unk>": 1}, unk_token="<unk>")


def normalizer_cases():
    texts = ["", " ", "Hello  Wörld ", "\u00a0\u3000x\u2028", "e\u0301\u0323 q\u0307\u0323 \u1e9b\u0323",
             "ﬁ ① Ⅷ ㋿ ½ Å \u2126 \u212a", "İSTANBUL ΣΑΣ ẞ", "a\u200bb\u00adc\ufeffd\u0000e\u0007f\tg\nh\rj",
             "中文ab가", "각\u11a7 \u1100\u1161\u11a8 \u0958", "naïve café ñ", "a▁b\ufffdc\u0378d"]
    configs = [dict(type=t) for t in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents",
                                      "ByteLevel", "Nmt")]
    configs += [dict(type="Strip", strip_left=l, strip_right=r)
                for l, r in itertools.product((True, False), repeat=2)]
    configs += [dict(type="BertNormalizer", clean_text=c, handle_chinese_chars=h, strip_accents=s,
                     lowercase=l)
                for c, h, s, l in ((True, True, None, True), (True, False, None, False),
                                   (False, True, True, False), (False, False, False, True))]
    configs += [dict(type="Prepend", prepend="▁"),
                dict(type="Replace", pattern={"String": " "}, content="▁"),
                dict(type="Replace", pattern={"Regex": "\\s+|[A-Z]"}, content="_"),
                dict(type="Sequence", normalizers=[dict(type="NFKC"), dict(type="Lowercase"),
                                                   dict(type="Prepend", prepend=">")])]
    for config in configs:
        hf = Tokenizer.from_str(json.dumps(whole(any_model(), normalizer=config))).normalizer
        yield dict(config=config, cases=[[t, hf.normalize_str(t)] for t in texts])


def pre_tokenizer_cases():
    texts = ["a--b", "--a-b--", "Hello, world!  It's 3.14 and 1234567", "  two  spaces \n\n x\t",
             "don't DON'T we'LL 'ſ K\u212a", "x²½ ٣٤ Ⅷ①", "日本語テキスト かなABC 한국어ー русский",
             "▁a b▁c", "a\u0301b\u200dc\u180ed_e", "foo(bar)$+<=>«x»", "\r\n\r\n  end  "]
    splits = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
    configs = [dict(type="Split", pattern={"String": "-"}, behavior=b, invert=i)
               for b, i in itertools.product(splits, (False, True))]
    regexes = [
        "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
        "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
        "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+"
        "(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\\p{N}{1,3}",
        "[\\p{Han}]+|[\\p{L}&&[^\\p{Han}]]+", "[一-龥぀-ゟ゠-ヿ]+", "\\d{1,3}(?=(?:\\d{3})*\\b)",
        "\\p{N}{1,2}+", "\\w+|[^\\w\\s]+", "\\b", "(?=[A-Z])", "[^\\S\\n]+", "[[:punct:]]", "\\p{Punct}",
        "\\h+", "^.", ".$", "a*", "(?<=a)b?", "\\s{2}", "[\\s\\S]{3}", "[a-c[x-z]]", "\\p{^L}+", "(?i)k",
        "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+", "\\x{62}|\\u0063", "(?>a+)b|--?"]
    configs += [dict(type="Split", pattern={"Regex": r}, behavior="Isolated", invert=False)
                for r in regexes]
    configs += [dict(type="Split", pattern={"Regex": regexes[1]}, behavior="Removed", invert=True)]
    configs += [dict(type="ByteLevel", add_prefix_space=p, trim_offsets=True, use_regex=r)
                for p, r in itertools.product((True, False), repeat=2)]
    configs += [dict(type="Metaspace", replacement="▁", prepend_scheme=p, split=s)
                for p, s in itertools.product(("always", "first", "never"), (True, False))]
    configs += [dict(type="Digits", individual_digits=i) for i in (True, False)]
    configs += [dict(type="Punctuation", behavior=b) for b in splits]
    configs += [dict(type=t) for t in ("Whitespace", "WhitespaceSplit", "BertPreTokenizer",
                                       "UnicodeScripts")]
    configs += [dict(type="CharDelimiterSplit", delimiter="b"), dict(type="FixedLength", length=3)]
    configs += [dict(type="Sequence", pretokenizers=[
        dict(type="Punctuation", behavior="Contiguous"),
        dict(type="ByteLevel", add_prefix_space=False, trim_offsets=True, use_regex=True),
        dict(type="Digits", individual_digits=False),
        dict(type="Split", pattern={"Regex": "[0-9][0-9][0-9]"}, behavior="Isolated", invert=False)])]
    for config in configs:
        hf = Tokenizer.from_str(json.dumps(whole(any_model(), pre_tokenizer=config))).pre_tokenizer
        yield dict(config=config, cases=[[t, [p for p, _ in hf.pre_tokenize_str(t)]] for t in texts])


def decoder_cases():
    lists = [[], ["▁Hello", "▁wor", "ld", "<0x21>"], ["<0xE4>", "<0xBD>", "<0xA0>", "x"],
             ["<0xE4>", "<0xBD>", "x", "<0x41>", "<0xFF>"], ["Hello", "##ing", "un", "##do", ".", "n't"],
             ["Ġa", "Ã©", "â", "Ĥ", "¬", "â", "Ĥ", "b", "<｜x｜>", "é"], ["foo</w>", "b", "ar</w>", "z</w>"],
             ["a", "a", "<pad>", "a", "|", "b", "b"], [" x ", " ", "  y  ", " "], ["▁▁a▁", "▁b▁▁c"]]
    configs = [dict(type="ByteLevel", add_prefix_space=True, trim_offsets=True, use_regex=True),
               dict(type="ByteFallback"), dict(type="Fuse"), dict(type="BPEDecoder", suffix="</w>"),
               dict(type="Strip", content=" ", start=1, stop=0), dict(type="Strip", content=" ", start=0, stop=1),
               dict(type="Replace", pattern={"String": "▁"}, content=" "),
               dict(type="Replace", pattern={"Regex": "[a-c]+"}, content="_")]
    configs += [dict(type="WordPiece", prefix="##", cleanup=c) for c in (True, False)]
    configs += [dict(type="CTC", pad_token="<pad>", word_delimiter_token="|", cleanup=c) for c in (True, False)]
    configs += [dict(type="Metaspace", replacement="▁", prepend_scheme=p, split=True)
                for p in ("always", "first", "never")]
    replace = dict(type="Replace", pattern={"String": "▁"}, content=" ")
    configs += [dict(type="Sequence", decoders=[replace, dict(type="ByteFallback"), dict(type="Fuse"), *tail])
                for tail in ([], [dict(type="Strip", content=" ", start=1, stop=0)],
                             [dict(type="Strip", content=" ", start=0, stop=1)])]
    for config in configs:
        hf = Tokenizer.from_str(json.dumps(whole(any_model(), decoder=config))).decoder
        cases = []
        for tokens in lists:
            try:
                cases.append([tokens, hf.decode(tokens)])
            except BaseException:  # a token shorter than what Strip may take ends in a panic
                pass
        yield dict(config=config, cases=cases)


def bpe(**options):
    vocab = {"<unk>": 0, "▁": 1, "a": 2, "b": 3, "c": 4, "ab": 5, "abc": 6, "▁a": 7, "▁abc": 8, "bc": 9, "aa": 10,
             "aaaa": 11, "b▁a": 12, "a</w>": 13, "##b": 14, "a##b": 15, "ab</w>": 16, "b</w>": 17}
    vocab.update({f"<0x{i:02X}>": 18 + i for i in range(256)})
    merges = [["a", "a"], ["aa", "aa"], ["b", "c"], ["a", "b"], ["ab", "c"], ["▁", "a"], ["▁a", "bc"]]
    model = dict(type="BPE", dropout=None, unk_token="<unk>", continuing_subword_prefix=None,
                 end_of_word_suffix=None, fuse_unk=False, byte_fallback=False, ignore_merges=False,
                 vocab=vocab, merges=merges)
    model.update(options)
    return model


def unigram(byte_fallback):
    vocab = [["<unk>", 0.0], ["▁", -2.0], ["a", -3.0], ["b", -3.0], ["ab", -4.5], ["aba", -5.0], ["▁ab", -5.5],
             ["aa", -6.0], ["c", -3.25], ["<0x64>", -9.0], ["<unk>x", -9.5]]
    return dict(type="Unigram", unk_id=0, vocab=vocab, byte_fallback=byte_fallback)


def wordpiece(limit):
    words = ["[UNK]", "un", "##aff", "##able", "##a", "run", "##ning", "é", "##é", "[CLS]", "[SEP]", ",", "a"]
    return dict(type="WordPiece", unk_token="[UNK]", continuing_subword_prefix="##",
                max_input_chars_per_word=limit, vocab={w: i for i, w in enumerate(words)})


def added(tokens):
    keys = ("id", "content", "single_word", "lstrip", "rstrip", "normalized", "special")
    return [dict(zip(keys, t)) for t in tokens]


def tokenizer_cases():
    bos_eos = dict(type="TemplateProcessing", single=[{"SpecialToken": {"id": "B", "type_id": 0}},
                   {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "E", "type_id": 0}}],
                   pair=[{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
                   special_tokens={"B": {"id": "B", "ids": [0, 1], "tokens": ["x", "y"]},
                                   "E": {"id": "E", "ids": [2], "tokens": ["z"]}})
    bert = dict(type="BertProcessing", sep=["[SEP]", 10], cls=["[CLS]", 9])
    space = dict(type="Replace", pattern={"String": " "}, content="▁")
    words = dict(type="WhitespaceSplit")
    fuse = dict(type="Fuse")
    yield from (whole(bpe(**o), normalizer=space, decoder=fuse, added_tokens=added(
        [(274, "<s>", False, False, False, False, True), (275, "</s>", False, False, True, False, True)]))
        for o in (dict(), dict(unk_token=None), dict(fuse_unk=True), dict(byte_fallback=True),
                  dict(byte_fallback=True, fuse_unk=True), dict(ignore_merges=True)))
    yield whole(bpe(end_of_word_suffix="</w>"), pre_tokenizer=words,
                decoder=dict(type="BPEDecoder", suffix="</w>"))
    yield whole(bpe(continuing_subword_prefix="##", merges=[]), pre_tokenizer=words, post_processor=bos_eos)
    yield whole(unigram(False), normalizer=space)
    yield whole(unigram(True), normalizer=space, post_processor=bos_eos)
    yield whole(wordpiece(100), pre_tokenizer=dict(type="BertPreTokenizer"), post_processor=bert,
                decoder=dict(type="WordPiece", prefix="##", cleanup=True))
    yield whole(wordpiece(5), pre_tokenizer=words)
    yield whole(dict(type="WordLevel", vocab={"abc": 0, "<unk>": 1, "c": 2}, unk_token="<unk>"), pre_tokenizer=words)
    for flags in itertools.product((False, True), repeat=5):  # single_word lstrip rstrip normalized special
        tokens = added([(274, "<m>", *flags), (275, "<s>", False, False, False, False, True)])
        yield whole(bpe(), added_tokens=tokens, normalizer=dict(type="Lowercase"), decoder=fuse,
                    post_processor=bos_eos)


def whole_cases():
    texts = ["", "abc", "aaaaaaa aa", "ab cab\u00e9\u00e9c d", "▁▁abc▁b▁abc", "bab b abc", "xyz<s>ab </s> c",
             "unaffable running,a é unaffx", "<s><s>  <s> \n a<m>b <m> c<m>", "ABC <M> Ab", "é<m>\u3000<m>1"]
    for config in tokenizer_cases():
        hf = Tokenizer.from_str(json.dumps(config))
        cases = []
        for text in texts:
            case = dict(text=text, ids=hf.encode(text, add_special_tokens=False).ids,
                        ids_special=hf.encode(text).ids)
            case["decode"] = hf.decode(case["ids"], skip_special_tokens=False)
            case["decode_skip"] = hf.decode(case["ids"])
            hf.encode_special_tokens = True
            case["ids_plain"] = hf.encode(text, add_special_tokens=False).ids
            hf.encode_special_tokens = False
            cases.append(case)
        yield dict(config=config, cases=cases)


def main():
    data = dict(oracle=f"tokenizers {tokenizers.__version__}", normalizer=list(normalizer_cases()),
                pre_tokenizer=list(pre_tokenizer_cases()), decoder=list(decoder_cases()),
                tokenizer=list(whole_cases()))
    lines = ['{"oracle": ' + json.dumps(data.pop("oracle"))]
    for kind, entries in data.items():
        rows = ",\n".join(json.dumps(e) for e in entries)
        lines.append(f'{json.dumps(kind)}: [\n{rows}\n]')
    path = pathlib.Path(__file__).parent / "data" / "tokenizer-parts.json"
    path.write_text(",\n".join(lines) + "}\n")


if __name__ == "__main__":
    main()
