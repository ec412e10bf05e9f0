"""Words of shops in many languages are read in the code page that they were written in, or in none."""

from __future__ import annotations

import random

import pytest

from ccmtl_core.tables.dialects.code_pages import likely_code_pages

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
]
SUBSETS, FEW = 8, 4


@pytest.mark.parametrize(("language", "code_page"), WRITTEN)
def test_words_are_read_rightly_and_few_words_never_wrongly(language: str, code_page: str) -> None:
    words = WORDS[language].split("; ")
    words = [word for word in words if word.encode(code_page, "replace").decode(code_page) == word]
    draw = random.Random(language)
    for some in (words, *(draw.sample(words, FEW) for _ in range(SUBSETS))):
        read = {text for _, text in likely_code_pages([word.encode(code_page) for word in some])}
        right = "\n".join(some).encode(code_page).decode(code_page)
        assert right in read or len(read) != 1, (read, right)
        if some is words:
            assert read == {right}
