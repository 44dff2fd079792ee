"""The pages of the workbench, in the order of the work."""

from keyhole.workbench.page import Page
from keyhole.workbench.pages.data import DATA
from keyhole.workbench.pages.dossier import DOSSIER
from keyhole.workbench.pages.environment import ENVIRONMENT
from keyhole.workbench.pages.exposure import EXPOSURE
from keyhole.workbench.pages.protect import PROTECT
from keyhole.workbench.pages.recode import RECODE
from keyhole.workbench.pages.scenario import SCENARIO
from keyhole.workbench.pages.select import SELECT
from keyhole.workbench.pages.solve import SOLVE
from keyhole.workbench.pages.study import STUDY
from keyhole.workbench.pages.synthesise import SYNTHESISE
from keyhole.workbench.pages.tables import TABLES

__all__ = ["PAGES"]

PAGES: tuple[Page, ...] = (
    *(DATA, ENVIRONMENT, SCENARIO, EXPOSURE, SELECT, SOLVE, RECODE, PROTECT, SYNTHESISE),
    *(TABLES, STUDY, DOSSIER),
)
