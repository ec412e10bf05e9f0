"""Words of shops in many languages are read in the code page that they were written in, or in none."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ccmtl_core.tables.dialects.code_pages import likely_code_pages
from ccmtl_core.tables.dialects.read_table import read_table

WORDS = {
    "Finnish": "hyvää; maitojäätelö; käsityö; sämpylä; möhkäle; vihreä tee; pähkinä; leipä; "
    "kääryle; öljy; mehukeitto päärynä; säilyke",
    "Japanese": "牛乳; 食器用洗剤; 豚肉; 卵; 醤油; 味噌汁; 米; 砂糖; りんご; パン; "
    "バナナ; 食パン 6枚; 紅茶; ジュース",
    "Portuguese": "Pão; feijão; maçã; limão; café; pêssego; água; óleo; açúcar; sabão em pó; mamão; "
    "maracujá; guaraná",
    "French": "Crème brûlée; Café; Gâteau; pâté de campagne; noël; mélange; pêche; thé à la "
    "menthe; œufs; bœuf haché; fraîche; çà; maïs",
    "Spanish": "Jalapeño; Piña; melocotón; jamón; azúcar; café; champiñón; leche semidesnatada "
    "de Almería; atún; salchichón; pingüino; plátano",
    "Swedish": "Mjölk; Äpple; Ål; smör; bröd; kål; köttfärs; ägg; fläsk; kräm; påse",
    "Danish": "Mælk; Smør; Rødgrød; pålæg; Øl; kød; rugbrød; æble; fløde; kål",
    "Norwegian": "Brød; melk lettmælk; kjøtt; Øl; eple blåbær; grønnsaker; pålegg",
    "Italian": "caffè; Tiramisù; perché; qualità; più buono; tè verde; ragù; città; latte è",
    "Hungarian": "sűrített; őszibarack; kenyér; gyümölcs; almás pité; tejföl; kávé; méz; "
    "csirkemáj; zöldség; főzőtejszín; kéksajt",
    "Turkish": "Süt; Yoğurt; şeker; çay; ekşi; ayçiçek yağı; mısır; peynir kaşar dilimli ı; "
    "zeytin yeşil; bulgur köftelik; üzüm",
    "Romanian": "Pâine; lapte bătut; brânză; ţuică; smântână; roşii; ouă; vişine; caşcaval",
    "Czech": "Mléko; chléb; čokoláda; řepa; žito; sýr; máslo; kuře; hořčice; něco; šunka; vejce čerstvá; kůň",
    "Slovak": "mäso; čučoriedky; žemľa; kŕmna; mlieko čerstvé; šťava; syr údený; ľadový čaj; ôsmy",
    "Polish": "Mleko świeże; żółty; śmietana; gęś; mąka; chleb żytni; ser biały; jajka źródło; "
    "łosoś; mięso; pączek",
    "Icelandic": "Mjólk; skyr þykkt; rúgbrauð; ís; fiskur þorskur; grænmeti; brauð; súkkulaði; "
    "harðfiskur; öl",
    "Lithuanian": "sūris; žalia; šviežias; ąžuolas; agurkų; kiaušinis; mėsa; sviestas šaldytas; "
    "žuvis; česnakas; įdaras",
    "Latvian": "maize rupjā; āboli; šķiņķis; žāvēti; kūka; ķiploki; biezpiena sieriņš",
    "German": "Käse; Brötchen; Müsli; Weißbrot; Äpfel; Öl; Möhren; würzig; Grünkohl; früh",
    "Russian": "Молоко; Сыр; Хлеб; масло; чай; Огурцы; кофе; СОК; ВОДА; яйцо; шоколад",
    "Ukrainian": "Молоко; Сир; Хліб; олія; їжа; кефір; яйця; КАВА",
    "Greek": "Γάλα; Τυρί; Ψωμί; καφές; τσάι; Ελαιόλαδο; αυγά; Νερό",
    "Chinese": "面包; 牛奶; 鸡蛋; 苹果汁; 大米; 酱油; 绿茶; 洗发水; 纸巾; 可乐",
    "Taiwanese": "牛奶; 麵包; 雞蛋; 蘋果汁; 醬油; 綠茶; 可樂; 衛生紙",
    "Korean": "우유; 빵; 달걀; 사과; 쌀; 간장; 녹차; 콜라; 샴푸; 휴지",
    "Thai": "นมสด; ขนมปังขาว; ชีสเหลือง; ข้าวหอมมะลิ; น้ำดื่ม; ไข่ไก่; กาแฟดำ; ชาเขียว; น้ำตาลทราย; เกลือป่น; "
    "ปลากระป๋อง; สบู่ก้อน",
    "Hebrew": "חלב; לחם; גבינה; ביצים; קפה; תה; סוכר; מלח; מים; אורז; שוקולד; עגבניות",
    "Arabic": "حليب; خبز; جبنة; بيض; قهوة; شاي; سكر; ملح; ماء; أرز; شوكولاتة; طماطم",
    "Greek capitals": "ΓΑΛΑ; ΨΩΜΙ; ΤΥΡΙ; ΕΛΙΕΣ; ΚΑΦΕΣ; ΤΣΑΙ; ΖΑΧΑΡΗ; ΑΛΑΤΙ",
    "Russian capitals": "СЫР; ХЛЕБ; МОЛОКО; МАСЛО; КОФЕ; ЧАЙ; САХАР; СОЛЬ",
    "Bulgarian": "Мляко; Хляб; Сирене; Кафе; Чай; Захар; Сол; Яйца; Кисело мляко; Домати",
    "Serbian": "Млеко; Хлеб; Сир; Кафа; Чај; Шећер; Јаја; Љешник; Месо; Риба",
    "Half-width": "ｷﾞｭｳﾆｭｳ; ﾊﾟﾝ; ﾁｰｽﾞ; ﾀﾏｺﾞ; ｺｰﾋｰ; ｵﾁｬ; ｻﾄｳ; ｼｵ",
    "Croatian": "Mlijeko svježe; šećer; čaj; žitarice; piće; đumbir; voće; povrće; kečap; češnjak",
    "Estonian": "või; köögivili; jäätis; õun; mõdu; küüslauk; šokolaad; tüüpi; pähkel",
}
WRITTEN = [
    ("Finnish", "cp1252"),
    ("Japanese", "cp932"),
    ("Portuguese", "cp1252"),
    ("French", "cp1252"),
    ("French", "mac_roman"),
    ("French", "cp850"),
    ("Spanish", "cp1252"),
    ("Swedish", "cp1252"),
    ("Danish", "cp1252"),
    ("Norwegian", "cp1252"),
    ("Italian", "cp1252"),
    ("Hungarian", "cp1250"),
    ("Hungarian", "iso8859_2"),
    ("Turkish", "cp1254"),
    ("Romanian", "cp1250"),
    ("Czech", "cp1250"),
    ("Czech", "iso8859_2"),
    ("Slovak", "cp1250"),
    ("Polish", "cp1250"),
    ("Polish", "iso8859_2"),
    ("Icelandic", "cp1252"),
    ("Lithuanian", "cp1257"),
    ("Latvian", "cp1257"),
    ("German", "cp1252"),
    ("German", "mac_roman"),
    ("German", "cp850"),
    ("Russian", "cp1251"),
    ("Russian", "koi8_r"),
    ("Russian", "cp866"),
    ("Ukrainian", "cp1251"),
    ("Greek", "cp1253"),
    ("Chinese", "gbk"),
    ("Taiwanese", "big5"),
    ("Korean", "cp949"),
    *[("Thai", page) for page in ("cp874", "tis_620", "iso8859_11")],
    *[("Hebrew", page) for page in ("cp1255", "iso8859_8", "cp862")],
    *[("Arabic", page) for page in ("cp1256", "iso8859_6", "cp720")],
    *[("Greek", page) for page in ("iso8859_7", "cp737", "cp869", "mac_greek")],
    *[("Greek capitals", page) for page in ("cp1253", "cp869", "mac_greek")],
    *[(kind, page) for kind in ("Russian", "Bulgarian") for page in ("mac_cyrillic", "iso8859_5", "cp855")],
    *[("Russian capitals", page) for page in ("cp1251", "koi8_r", "cp866", "mac_cyrillic")],
    *[("Ukrainian", page) for page in ("koi8_u", "cp1125", "iso8859_5", "mac_cyrillic", "cp855")],
    *[("Serbian", page) for page in ("cp1251", "cp855", "iso8859_5", "mac_cyrillic")],
    *[("Turkish", page) for page in ("cp857", "mac_turkish")],
    *[(kind, "mac_latin2") for kind in ("Czech", "Slovak", "Polish", "Hungarian", "Croatian")],
    *[("Croatian", page) for page in ("cp1250", "iso8859_2", "cp852")],
    *[(kind, "cp775") for kind in ("Lithuanian", "Latvian")],
    *[("Estonian", page) for page in ("cp1257", "cp1252")],
    *[("Portuguese", page) for page in ("mac_roman", "cp850", "cp860")],
    ("Icelandic", "cp861"),
    ("Japanese", "euc_jp"),
    ("Half-width", "cp932"),
    ("Korean", "johab"),
]
NEVER_TOLD = [
    ("Greek capitals", "cp737"),
    ("Russian capitals", "iso8859_5"),
    ("Half-width", "euc_jp"),
    ("Romanian", "iso8859_16"),
]
SUBSETS = 3


@pytest.mark.parametrize(("language", "code_page"), WRITTEN)
def test_words_are_read_rightly(language: str, code_page: str) -> None:
    words = _words(language, code_page)
    assert _read(words, code_page) == {"\n".join(words)}


@pytest.mark.parametrize(("language", "code_page"), [*WRITTEN, *NEVER_TOLD])
def test_few_words_are_never_read_wrongly(language: str, code_page: str) -> None:
    words = _words(language, code_page)
    draw = random.Random(language)
    for n in (3, 4, 5, 6, len(words)):
        for _ in range(SUBSETS if n < len(words) else 1):
            some = draw.sample(words, min(n, len(words)))
            read = _read(some, code_page)
            assert len(read) != 1 or read == {"\n".join(some)}, (read, some)


def test_two_words_that_several_code_pages_read_alike_are_enough(tmp_path: Path) -> None:
    path = tmp_path / "sales.csv"
    path.write_bytes("Konto;Gegenschlüssel;Text\n8400;1;Verkäufe\n".encode("cp1252"))
    assert read_table(path).frame.rows() == [("8400", "1", "Verkäufe")]


def _words(language: str, code_page: str) -> list[str]:
    """The words of a language that a code page has all letters of."""
    words = WORDS[language].split("; ")
    return [word for word in words if word.encode(code_page, "replace").decode(code_page) == word]


def _read(words: list[str], code_page: str) -> set[str]:
    return {text for _, text in likely_code_pages([word.encode(code_page) for word in words])}
