"""Which folders are parts and which are classes, as far as their names tell."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Mapping

# Words in a folder's name that make it a part, in any case: Training, train_set, TRAIN2017.
READY = {"train": ("train", "training"), "validation": ("validation", "val", "valid")}
READY |= {"test": ("test", "testing")}
BESIDE = ("set", "data", "dataset", "images", "img", "imgs", "pictures", "photos", "split")
# What else is a part where most folders are called so: of other habits, and of other languages.
ELSEWHERE = re.compile(
    r"(dev|devel|development|eval|evaluation|query|gallery|probe|support|hold_?out|held_?out"
    r"|entrena\w*|treina\w*|treino|entraine\w*|apprentissage|addestra\w*|allenamento|lernen|egitim"
    r"|prueba|pruebas|prova|essai|prufung|pruefung|oefen\w*|toets|convalida|dogrulama|valida\w*|validier\w*"
    r"|tren(in|ov)\w*|kiem_tra|huan_luyen|تدريب|اختبار|walidac\w*|ucz[aą]c\w*|обуч\w*|трен\w*|тест\w*|провер\w*|валид\w*"
    r"|(训练|訓練|学习|學習|学習|测试|測試|验证|驗證|検証|評価|テスト|학습|훈련|테스트|시험|검증)\w*"
    r"|(u|ue)bung\w*|koulutus\w*|testaus\w*|antren\w*|tanito\w*|teszt\w*|tra(e)?ning\w*|latih|uji"
    r"|pelatihan|pengujian|навч\w*|перевір\w*|обука|(εκπαιδευσ|δοκιμ|ελεγχ|επικυρωσ)\w*|אימון|מבחן"
    r"|בדיקה|אימות|آموزش|آزمون|آزمایش|تربیت|(प्रशिक्षण|परीक्ष|सत्यापन|चाचणी|প্রশিক্ষণ|পরীক্ষ|பயிற்சி|சோதனை"
    r"|శిక్షణ|పరీక్ష|ತರಬೇತಿ|ಪರೀಕ್ಷ|പരിശീലന|പരിശോധന|તાલીમ|પરીક્ષ|ਸਿਖਲਾਈ|ฝึก|อบรม|ทดสอบ|სწავლ|სასწავლ|ტესტ"
    r"|სატესტ|ուսուց|թեստ).*)"
    r"(_?(set|data|images|\d+))*"
)
# Names of what a data set is made of, which are seldom those of classes.
MATERIAL = (
    *("image", "images", "img", "imgs", "mask", "masks", "label", "labels", "annotations"),
    *("unlabeled", "unlabelled", "unsorted", "thumbnails", "thumbs", "gt", "groundtruth"),
    *("segmentation", "segmentations", "masken", "masque", "masques", "mascaras"),
)
MASKS = {"mask", "masks", "label", "labels", "annotations", "gt", "groundtruth", "segmentation"}
SHARES = (*MATERIAL, *BESIDE, "part", "fold", "batch", "chunk")  # what is cut into numbered ones
# What file managers call a folder that nobody has named, in the languages that they speak.
UNNAMED = """new folder|neuer ordner|nouveau dossier|nueva carpeta|carpeta nueva|nuova cartella
nova pasta|novo cartafol|carpeta nova|nieuwe map|ny mappe|ny mapp|uusi kansio|nowy folder
nowy katalog|nova slozka|novy priecinok|nova mapa|nova fascikla|dosar nou|folder nou|uj mappa
novy adresar|yeni klasor|folder baru|thu muc moi|naujas aplankas|jauna mape|uus kaust
karpeta berria|nuwe gids|nova dosierujo|новая папка|нова папка|новий каталог|нова тека
нова фасцикла|жаңа бума|νεος φακελος|ახალი საქაღალდე|תיקיה חדשה|תיקייה חדשה|مجلد جديد|پوشه جدید
नया फ़ोल्डर|नयाँ फोल्डर|নতুন ফোল্ডার|புதிய கோப்புறை|โฟลเดอร์ใหม่|新建文件夹|新文件夹|新資料夾
新增資料夾|新しいフォルダー|新しいフォルダ|새 폴더|untitled folder|unnamed folder|untitled|unnamed
unbenannter ordner|ordner ohne titel|unbenannt|dossier sans titre|sans titre|carpeta sin titulo
sin titulo|cartella senza titolo|cartella senza nome|pasta sem titulo|pasta sem nome
cartafol sen titulo|carpeta sense nom|naamloze map|unavngivet mappe|mappe uten navn|namnlos mapp
nimeton kansio|folder bez nazwy|katalog bez nazwy|nepojmenovana slozka|priecinok bez nazvu
neimenovana mapa|dosar nedenumit|nevtelen mappa|adsiz klasor|folder tanpa judul|thu muc khong ten
bevardis aplankas|nenosaukta mape|nimetu kaust|безымянная папка|папка без названия|неназвана тека
ανωνυμος φακελος|תיקייה ללא שם|مجلد دون اسم|अनाम फ़ोल्डर|โฟลเดอร์ไม่มีชื่อ|未命名文件夹
未命名資料夾|未命名|名称未設定フォルダ|無題のフォルダー|이름 없는 폴더|무제 폴더"""
COPIED = "cop(y|ie|ia)|cópia|kop(ie|ia|i|ija|io|ya)|kópia|копи[яја]|копія|αντίγραφο|másolat"
COPIED += "|salinan|koopia|副本|拷贝|拷貝|複製|コピー|복사본|نسخة|کپی|עותק|प्रतिलिपि|สำเนา|bản sao"
# What systems put to a name: "copy of x", "x - Kopie (2)", "x のコピー", "x (1)", "x 2".
COPY = re.compile(
    rf"^({COPIED})( (of|von|van|de|di|av|af|z))? "
    rf"|[ _–—の(-]+({COPIED})\)?( ?\(?\d+\)?)?$| ?\(\d+\)$|[ _-]\d{{1,2}}$"
)
SHOWN = 5  # names in a sentence


def roles(names: Collection[str]) -> dict[str, list[str]]:
    """The names that say a part, by it, beside what all names have in common."""
    found, shared = defaultdict[str, list[str]](list), _shared(names)
    for name in names:
        if part := _role(_words(name) - shared):
            found[part].append(name)
    return found


def doubt(folders: Mapping[str, Collection[str]]) -> str:
    """Why folders of these names, with these folders in them, are seldom classes; else ""."""
    if names := _seldom(list(folders)):
        if twice := [some for some in roles(folders).values() if len(some) > 1]:
            return f"{listed(twice[0])} name one part: put what is in them into one folder"
        return (
            f"{listed(names)} seldom {'is a class' if len(names) == 1 else 'are classes'}. Parts "
            "are called train, val and test, with a folder for each class in each"
        )
    holders = defaultdict(list)
    for name, inside in folders.items():
        for one in inside:
            holders[one].append(name)
    same = {one: names for one, names in holders.items() if len(names) > 1}
    if same and (len(same) > 1 or max(map(len, folders.values())) > 1):  # else all is in "images"
        names = sorted(set().union(*same.values()))
        return (
            f"{listed(names)} hold folders of the same names ({listed(sorted(same))}), whose "
            "pictures would be taken together. If those are the classes, name one folder of them, "
            "or call the folders above them train and test (and val); if they are the parts, put "
            "them above the classes"
        )
    for name, inside in folders.items():
        if also := sorted(set(map(plain, inside)) & set(map(plain, folders)) - {plain(name)}):
            return (
                f"{printed(name)} holds folders called as classes beside it ({listed(also)}): move "
                "it elsewhere, or name it if it is all that is meant"
            )
        if len(inside) and (odd := [one for one in inside if _words(one) & MASKS]):
            return (
                f"{printed(name)} holds a folder {listed(odd)} beside its pictures, which would be "
                "learned from, too: move it elsewhere"
            )
    return ""


def listed(names: Collection[str]) -> str:
    """Some names for a sentence, and how many more there are."""
    some = [printed(name) for name in list(names)[:SHOWN]]
    return ", ".join(some) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def printed(name: str) -> str:
    """A name without what a terminal would obey."""
    shown = [c if c.isprintable() else c.encode("unicode_escape").decode() for c in name]
    return "".join(shown)


def plain(name: str) -> str:
    """A name without what no reader sees in it: capitals, spaces, marks, the coding of accents."""
    seen = "".join(c for c in name if unicodedata.category(c) != "Cf")
    return " ".join(unicodedata.normalize("NFC", seen).casefold().split())


def original(name: str) -> str:
    """The plain name of what a folder called like a copy is one of."""
    return COPY.sub("", plain(name))


def _words(name: str) -> set[str]:
    """The words of a folder's name, without numbers: train_set, TrainSet2 and trainset have two.

    Of India's and Thailand's scripts the signs between letters are none to Python, and belong to
    their words.
    """
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|(?:[^\W\d_]|[\u0900-\u0eff])+", name)
    return {part for word in words for part in re.split("(?=(?:set|data)$)", word.lower()) if part}


def _letters(name: str, shared: Collection[str]) -> str:
    """A name in small letters, without accents or shared words, one mark between its words."""
    for word in shared:
        name = name.casefold().replace(word, " ")
    seen = unicodedata.normalize("NFKD", name.casefold())
    kept = unicodedata.normalize("NFC", re.sub("[\u0300-\u036f]", "", seen))
    marked = (c if c.isalnum() or unicodedata.category(c)[0] == "M" else "_" for c in kept)
    return re.sub("_+", "_", "".join(marked)).strip("_")


def _shared(names: Collection[str]) -> set[str]:
    """Words that all names have, such as "seg" of seg_train and seg_test."""
    return set.intersection(*map(_words, names)) if len(names) > 1 else set()


def _role(words: set[str]) -> str | None:
    """The part that the words name and nothing more."""
    roles = {part for part, own in READY.items() if words & set(own)}
    known = set(BESIDE).union(*READY.values())
    return roles.pop() if len(roles) == 1 and words <= known else None


def _named(words: set[str]) -> str | None:
    """The part that a word names or begins with, whatever stands beside it: trainA, Testdaten."""
    for part in ("train", "test"):
        if any(word.startswith(part) for word in words):
            return part
    return "validation" if words & set(READY["validation"]) else None


def _seldom(names: list[str]) -> list[str]:
    """Those that are called like a part, or like what a data set is made of or cut into."""
    words, shared = {name: _words(name) for name in names}, _shared(names)
    parts = [name for name in names if _role(words[name] - shared)]
    if len(parts) < 2:  # else what is left without the shared words is what they differ in
        parts = [name for name in names if _role(words[name])]
    parts_named = {name: part for name in names if (part := _named(words[name]))}
    if len(set(parts_named.values())) > 1 or len(parts_named) == len(names):
        parts += parts_named
    elsewhere = [name for name in names if ELSEWHERE.fullmatch(_letters(name, shared))]
    likely = {*parts, *parts_named, *elsewhere}
    parts += likely if elsewhere and max(1, len(names) / 2) < len(likely) else []
    numbered = all(own == shared for own in words.values()) and shared & set(SHARES)
    material = set(MATERIAL) | set(BESIDE)
    unnamed = {_letters(name, ()) for name in re.split(r"[|\n]", UNNAMED)}
    return [
        name
        for name in names
        if name in parts
        or re.sub(r"(_\d+)+$", "", _letters(name, ())) in unnamed
        or (len(names) > 1 and numbered)
        or (words[name] & set(MATERIAL) and words[name] <= material)
    ]
