"""The golden cases: what is asked of each verb, and of which files.

A case is a command line without ``keyhole`` and ``--json``. ``after`` names cases whose files it
needs, ``writes`` the files whose content is compared too, ``golden`` the case that prints the same.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """A command line whose JSON must not change."""

    words: str
    after: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    golden: str = ""
    varies: tuple[str, ...] = ()


K5 = "--keys sex,ag8r,race1,ms,homstate"
CSV_CODES = "coded.csv --missing-codes 'age:-9|-8,income:-1,psrcd:-9,ms:?,race1:?'"
CODED_KEYS = "--keys sex,age,race1,ms,psrcd"
ACS_CODES = "acs.parquet --missing-codes 'WKHP:-1,POVPIP:-1,ENG:-9,COW:-9'"
ACS_KEYS = "--keys STATE,AGEP,SEX,RAC1P,MAR,ENG"
CANDIDATES = "--candidates ag8r,ms,race1,homstate,ethnic,pow,psrcd"
STUDY = "study --puf puf.csv --eif eif.csv --iuf iuf.csv --puf-id puf_id --eif-id eif_id"
LINK = "--link sex,age,race1,homstate"
DRAW = "synthesise puf.csv --keys sex,age,ms,race1 --seed 2718281828459 --implicates 2"
STAY = "--drop puf_id,household,ag8r,area"
ENV = "--store env.db"
PAGES = ("dossier/report.html", "dossier/public-note.html")

RISK = {
    "risk": Case(f"risk puf.csv {K5}"),
    "risk-records": Case(
        f"risk puf.csv {K5} --weight weight --household household --records risk.csv",
        writes=("risk.csv",),
    ),
    "risk-fraction": Case(f"risk puf.csv {K5} --fraction 0.1 --cutoff 5 --limit 0.1"),
    "risk-sdcmicro": Case(f"risk puf.csv {K5} --weight weight --approximation sdcmicro"),
    "risk-by": Case(f"risk puf.csv {K5} --by psrcd --limit 0.2"),
    "risk-by-named": Case(f"risk puf.csv {K5} --weight weight --by race1 --name-small-groups"),
    "risk-disk": Case(f"risk puf.csv {K5} --by sex --engine disk --memory 256MB"),
    "risk-disk-wildcard": Case(f"risk {CSV_CODES} {CODED_KEYS} --missing wildcard --engine disk"),
    "risk-scenarios": Case(
        "risk puf.csv --scenario 'nosy neighbour,commercial database' --store env.db",
        after=("environment-init",),
    ),
    **{
        f"risk-coded-{missing}-{kind}": Case(
            f"risk {source} {CODED_KEYS} --missing {missing} --weight weight --by sex"
        )
        for missing in ("own", "wildcard", "drop")
        for kind, source in (("sav", "coded.sav"), ("csv", CSV_CODES))
    },
    "risk-coded-dta": Case(
        f"risk coded.dta {CODED_KEYS} --missing-codes 'age:-9|-8,ms:?' --kinds age=category"
    ),
    "risk-kinds": Case(
        f"risk {CSV_CODES} {CODED_KEYS} --kinds age=category,psrcd=measure --fraction 0.05 "
        "--missing wildcard --records risk-kinds.csv",
        writes=("risk-kinds.csv",),
    ),
    "acs-risk": Case(f"risk {ACS_CODES} {ACS_KEYS} --weight PWGTP --limit 0.3 --by SEX"),
    "acs-risk-wildcard": Case(f"risk {ACS_CODES} {ACS_KEYS},COW --missing wildcard"),
    "acs-risk-disk": Case(f"risk {ACS_CODES} {ACS_KEYS} --missing drop --engine disk"),
}

UNIQUES = {
    "uniques": Case(f"uniques puf.csv {K5} --records uniques.csv", writes=("uniques.csv",)),
    "uniques-sdcmicro": Case(
        f"uniques puf.csv {K5} --max-size 3 --convention sdcmicro --fraction 0.1"
    ),
    "uniques-ihsn": Case(
        f"uniques puf.csv {K5} --convention ihsn --availability ms=2,sex=0.5 "
        "--identifiability race1=1.5 --cutoff 5"
    ),
    "uniques-disk": Case(f"uniques puf.csv {K5} --max-size 2 --engine disk"),
    "uniques-coded": Case(f"uniques coded.sav {CODED_KEYS} --fraction 0.1"),
    "uniques-coded-csv": Case(f"uniques {CSV_CODES} {CODED_KEYS} --max-size 2"),
    "acs-uniques": Case(f"uniques {ACS_CODES} {ACS_KEYS} --max-size 3 --fraction 0.0005"),
}

DRIVERS = {
    "drivers": Case(f"drivers puf.csv {K5}"),
    "drivers-variables": Case(
        f"drivers puf.csv {K5} --variables age,psrcd,income --level 0.9 --most-levels 20 --cutoff 5"
    ),
    "drivers-named": Case(
        "drivers puf.csv --keys sex,ag8r,race1,ms --name-small-groups --engine disk"
    ),
    "drivers-coded": Case(f"drivers coded.sav {CODED_KEYS}"),
    "acs-drivers": Case(f"drivers {ACS_CODES} --keys SEX,RAC1P,MAR,ENG,ESR,COW --most-levels 10"),
}

SCREEN = {
    "screen": Case("screen puf.csv --year 2024"),
    "screen-keys": Case(f"screen puf.csv {K5},psrcd,psx --year 2024 --sure 0.3 --nearly 0.6"),
    "screen-dependences": Case("screen puf.csv --only-dependences --no-sets --nearly 0.8"),
    "screen-coded": Case("screen coded.sav --year 2024"),
    "screen-coded-csv": Case(f"screen {CSV_CODES} --year 2024 --no-sets --kinds age=category"),
    "acs-screen": Case(f"screen {ACS_CODES} --year 2024 --no-sets"),
}

SELECT = {
    "select-forward": Case(f"select puf.csv --keep sex {CANDIDATES} --limit 0.1"),
    "select-backward": Case(
        f"select puf.csv --keep sex {CANDIDATES} --limit 0.1 --method backward"
    ),
    "select-stepwise": Case(
        f"select puf.csv --keep sex {CANDIDATES} --limit 0.15 --method stepwise --drop-limit 0.08"
    ),
    "select-difference": Case(
        f"select puf.csv {CANDIDATES} --limit 0.1 --criterion difference --cr-weight 0.3 --cutoff 5"
    ),
    "select-skip-dependent": Case(
        f"select puf.csv --keep sex {CANDIDATES},psx,age --limit 0.1 --skip-dependent"
    ),
    "select-by": Case(f"select puf.csv {CANDIDATES} --limit 0.2 --by sex --name-small-groups"),
    "select-alternatives": Case(
        "select puf-age10.csv --keep sex --candidates 'age|age10|ag8r,ms,psx|psrcd,homstate' "
        "--limit 0.1 --values ms=3,age10=2"
    ),
    "select-compare": Case(f"select puf.csv {CANDIDATES} --limit 0.05,0.1 --cutoff 3,5 --compare"),
    "select-methods": Case(
        f"select puf.csv --keep sex {CANDIDATES} --limit 0.1 --method forward,stepwise"
    ),
    "select-disk": Case(f"select puf.csv --keep sex {CANDIDATES} --limit 0.1 --engine disk"),
    "select-coded": Case(
        "select coded.sav --keep sex --candidates age,ag8r,ms,race1,psrcd,homstate --limit 0.2"
    ),
    "acs-select": Case(
        f"select {ACS_CODES} --keep SEX --candidates AGEP,STATE,RAC1P,MAR,ENG,COW,ESR,SCHL "
        "--limit 0.05 --method stepwise"
    ),
}

SOLVE = {
    "solve": Case(
        "solve puf.csv --keys sex,age,race1,ms,homstate --limit 0.05 --worth age=2 --out best.csv",
        writes=("best.csv",),
    ),
    "solve-treated": Case(
        f"solve {CSV_CODES} --keys sex,age,race1,ms --limit 0.02 --limits 'sex|age=0.01' "
        "--suppress 0.02 --remove 0.01 --must age --engine disk"
    ),
}

FRONTIER = {
    "frontier": Case(f"frontier puf.csv --keep sex {CANDIDATES} --limit 0.1"),
    "frontier-values": Case(
        "frontier puf-age10.csv --candidates 'age|age10|ag8r,ms,race1,psx|psrcd,homstate' "
        "--limit 0.15 --values ms=3,race1=0.5 --cutoff 5"
    ),
    "frontier-coded": Case(
        f"frontier {CSV_CODES} --keep sex --candidates age,ag8r,ms,race1,psrcd --limit 0.2 "
        "--engine disk"
    ),
}

TABLE = {
    "table": Case(
        "table puf.csv --rows race1 --cols ms --out table.csv --internal audit.csv",
        writes=("table.csv", "audit.csv"),
    ),
    "table-weighted": Case(
        "table puf.csv --rows psrcd --cols sex,pow --weight weight --threshold 10 "
        "--range-percent 20 --cost cells"
    ),
    "table-magnitude": Case(
        "table puf.csv --rows race1 --cols sex --magnitude income --dominance 2,85 --p-percent 10"
    ),
    "table-hidden": Case(
        "table puf.csv --rows ethnic --cols race1 --threshold 5 --hidden-zeros --total-unknown "
        "--sliding-percent 10 --no-whole"
    ),
    "table-singletons": Case(
        "table puf.csv --rows source --cols sex --magnitude income --no-singletons --threshold 4"
    ),
    "table-rounded": Case("table puf.csv --rows psrcd --cols ms --protect round --base 10"),
    "table-rounded-random": Case(
        "table puf.csv --rows psrcd --cols sex --protect round --rounding random --seed 5"
    ),
    "table-none": Case("table puf.csv --rows ms --protect none"),
    "table-coded": Case("table coded.sav --rows ms --cols psrcd --weight weight"),
    "acs-table": Case(f"table {ACS_CODES} --rows RAC1P --cols SEX --weight PWGTP --threshold 5"),
}

PROTECT = {
    "protect-coarser": Case(
        f"protect puf.csv --plan plan-coarser.toml {K5} --out coarser.csv --seed 12345678901 "
        "--fitted fitted.toml",
        writes=("coarser.csv", "fitted.toml"),
    ),
    "protect-ledger": Case(
        f"protect puf.csv --plan plan-coarser.toml {K5} --out ledger.csv --ledger --limit 0.05 "
        "--weight weight --formula 'income ~ age + sex' --seed 12345678901"
    ),
    "protect-random": Case(
        "protect puf.csv --plan plan-random.toml --keys sex,race1,ms,homstate,source "
        "--out random.csv --seed 12345678901 --ledger --fraction 0.1 --targets age,income,source",
        writes=("random.csv",),
    ),
    "protect-grouped": Case(
        "protect puf.csv --plan plan-grouped.toml --keys sex,ag8r,race1,ms --out grouped.csv "
        "--seed 12345678901 --cutoff 5 --missing wildcard",
        writes=("grouped.csv",),
    ),
    "protect-compare": Case(
        f"protect puf.csv --plan plan-coarser.toml {K5} --out compared.csv --limit 0.1 "
        "--compare plan-grouped.toml --compare plan-random.toml --seed 12345678901"
    ),
    "protect-coded": Case(
        "protect coded.sav --plan plan-coded.toml --keys sex,ag8r,race1,ms --out safe.sav "
        "--seed 12345678901 --weight weight",
        writes=("safe.sav",),
    ),
    "protect-coded-csv": Case(
        f"protect {CSV_CODES} --plan plan-coded.toml --keys sex,ag8r,race1,ms --out safe.csv "
        "--seed 12345678901",
        writes=("safe.csv",),
    ),
}

SYNTHESISE = {
    "synthesise": Case(
        f"{DRAW} --targets age,ms --strata sex {STAY} --rules rules.toml --out drawn "
        "--formula 'income ~ age + sex' --crosses 'sex|ms' --self-match 200",
        writes=("drawn/release/implicate-1.csv", "drawn/release/implicate-2.csv"),
    ),
    "synthesise-targeted": Case(
        f"{DRAW} --targets age,ms,race1 --targeted {STAY} --out targeted --decoys 0.5 "
        "--match weighted --donors common --change 2 --self-match 0",
        writes=("targeted/release/implicate-2.csv",),
    ),
    "synthesise-options": Case(
        f"{DRAW} --targets age,ms --no-graded {STAY},income --out options --cutoff 3 "
        "--weight weight --folds 3 --match k-closest --neighbours 3 --cycles 1 --keep-order "
        "--models age=quantile --predictors 'age:psx|ms' --relations 0.1 --self-match 0",
        writes=("options/release/implicate-1.csv",),
    ),
    "synthesise-likely": Case(
        f"{DRAW} --targets age --strata sex {STAY} --out likely --fraction 0.1 "
        "--least-probability 0.2 --models age=linear --self-match 0",
    ),
    "synthesise-coded": Case(
        "synthesise coded.sav --keys sex,age,ms,race1 --targets age,ms --seed 2718281828459 "
        f"--implicates 2 {STAY} --out coded-drawn --self-match 0",
        writes=("coded-drawn/release/implicate-1.sav",),
    ),
    "synthesise-held-out": Case(
        f"{DRAW} --targets age,ms --strata sex {STAY} --hold-out 0.4 --out held --self-match 0",
        writes=("held/release/implicate-1.csv", "held/internal/control.csv"),
    ),
    "study-attacks": Case(
        "study --puf held/release --original held/internal/original.csv --control "
        "held/internal/control.csv --attacks singled-out,linked,inferred,present --link sex,age,ms "
        "--second-link race1,homstate,psx --secret income --numeric age,income --seed 7",
        after=("synthesise-held-out",),
    ),
    "tabulate": Case(
        "tabulate drawn/release --rows sex --cols ms --weight weight", after=("synthesise",)
    ),
    "tabulate-mean": Case(
        "tabulate drawn/release --rows sex,psrcd --mean age --weight weight --level 0.9",
        after=("synthesise",),
    ),
    "tabulate-share": Case(
        "tabulate drawn/release --rows ms --cols sex --share cols", after=("synthesise",)
    ),
    "study-ids-from": Case(
        "study --puf drawn/release/implicate-1.csv --ids-from puf.csv --eif eif.csv "
        f"--iuf iuf.csv --puf-id puf_id --eif-id eif_id {LINK} --permutations 20",
        after=("synthesise",),
    ),
}

METRICS = {
    "study-unicity": Case(
        f"{STUDY} {LINK} --permutations 50 --pairs pairs.csv", writes=("pairs.csv",)
    ),
    "study-taxicab": Case(
        f"{STUDY} {LINK} --numeric age --metric taxicab --alpha 0.8 --cuts each --rank-cap 3 "
        "--seed 7 --permutations 20"
    ),
    "study-euclidean": Case(
        f"{STUDY} {LINK} --numeric age --metric euclidean --threshold derived --permutations 20"
    ),
    "study-adhoc": Case(
        f"{STUDY} {LINK} --numeric age --metric adhoc --scores scores.toml --permutations 20"
    ),
    "study-metrics": Case(
        f"{STUDY} {LINK} --numeric age --metric unicity,taxicab,euclidean,adhoc "
        "--scores scores.toml --permutations 0"
    ),
    "study-strata": Case(
        f"{STUDY} --link age,race1,homstate,psx --strata sex,ms --orders highest --permutations 20"
    ),
    "study-candidates": Case(
        f"{STUDY.replace('puf.csv', 'whole=puf.csv', 1)} --puf tens=puf-tens.csv "
        f"--puf stateless=puf-stateless.csv {LINK} --numeric age "
        "--metric unicity,taxicab --permutations 0"
    ),
    "study-blank": Case(
        f"{STUDY.replace('puf.csv', 'puf-stateless.csv', 1)} {LINK} --blank homstate "
        "--permutations 0"
    ),
    "study-missing": Case(
        f"{STUDY} {LINK} --missing-codes 'race1:D,C' --kinds age=category --permutations 0"
    ),
    "study-scenario": Case(
        f"{STUDY} --scenario 'veterans association' --store env.db --permutations 0",
        after=("environment-init",),
    ),
}

ENVIRONMENT = {
    "environment-init": Case(f"environment init {ENV} --example --who nobody"),
    **{
        name: Case(words, after=("environment-init",))
        for name, words in {
            "environment-list": f"environment list {ENV}",
            "environment-list-codings": f"environment list codings {ENV}",
            "environment-list-forms": f"environment list forms {ENV}",
            "environment-list-sources": f"environment list sources {ENV}",
            "environment-show": f"environment show AG8.001 {ENV}",
            "environment-show-construct": f"environment show AG {ENV}",
            "environment-show-form": f"environment show 'Voter registration' {ENV}",
            "environment-show-target": f"environment show veterans {ENV}",
            "environment-show-scenario": f"environment show journalist {ENV}",
            "environment-map-form": f"environment map {ENV} --target veterans "
            "--form 'Voter registration' --why",
            "environment-map-sector": f"environment map {ENV} --target veterans --sector finance "
            "--threshold 0.5",
            "environment-map-joint": f"environment map {ENV} --target veterans --sector finance "
            "--joint",
            "environment-map-file": f"environment map {ENV} --target veterans --resources 6 "
            "--file puf.csv",
            "environment-join": f"environment join MS6.001 MS3.001 {ENV}",
            "environment-join-ages": f"environment join AG7.001 AG8.001 {ENV}",
            "environment-key": f"environment key 'veterans association' {ENV} --target veterans "
            "--why",
            "environment-enhance": f"environment enhance {ENV} --target veterans --resources 7 "
            "--sector finance",
            "environment-trend": f"environment trend {ENV}",
            "environment-trend-construct": f"environment trend {ENV} --construct AG "
            "--sector finance",
        }.items()
    },
    "environment-key-file": Case(
        f"environment key 'commercial database' {ENV} --target veterans --file puf.csv "
        "--out keyed.csv --keep puf_id",
        after=("environment-init",),
        writes=("keyed.csv",),
    ),
    "uniques-scenario": Case(
        f"uniques puf.csv --scenario 'veterans association' {ENV} --max-size 2",
        after=("environment-init",),
    ),
    "select-scenario": Case(
        f"select puf.csv --scenario 'commercial database' {ENV} --limit 0.1",
        after=("environment-init",),
    ),
}

REVIEWS = {
    "init": Case("init puf.csv --out drafted.toml", writes=("drafted.toml",)),
    "init-coded": Case(
        "init coded.sav --out drafted-coded.toml --keys sex,age,ms --kinds age=measure",
        writes=("drafted-coded.toml",),
    ),
    "init-csv": Case(f"init {CSV_CODES} --out drafted-csv.toml", writes=("drafted-csv.toml",)),
    "review-drafted": Case(
        # The page tells the hash of the review file, in which a seed is drawn.
        "review drafted.toml --out drafted",
        after=("init",),
        varies=("report.html", "made"),
        writes=("drafted/report.html", "drafted/public-note.html"),
    ),
    # The page tells the day, and who ran the review.
    "review": Case(
        "review review.toml --out dossier", varies=("report.html", "made"), writes=PAGES
    ),
    "verify": Case("verify dossier --review review.toml", after=("review",)),
    "report": Case(
        "report dossier",
        after=("review",),
        golden="review",
        varies=("report.html", "made"),
        writes=PAGES,
    ),
    "selftest": Case("selftest"),
}

CASES = {
    **RISK,
    **UNIQUES,
    **DRIVERS,
    **SCREEN,
    **SELECT,
    **FRONTIER,
    **SOLVE,
    **TABLE,
    **PROTECT,
    **SYNTHESISE,
    **METRICS,
    **ENVIRONMENT,
    **REVIEWS,
}
