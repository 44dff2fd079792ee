"""Frequent American given names and surnames, by which a column of names is known.

A few hundred are enough: a column is judged by the share of its records that have one of them.
"""

from __future__ import annotations

__all__ = ["GIVEN", "SURNAMES"]

_GIVEN = """
james john robert michael william david richard joseph thomas charles christopher daniel matthew
anthony mark donald steven paul andrew joshua kenneth kevin brian george edward ronald timothy
jason jeffrey ryan jacob gary nicholas eric jonathan stephen larry justin scott brandon benjamin
samuel frank gregory raymond alexander patrick jack dennis jerry tyler aaron jose adam henry
nathan douglas zachary peter kyle walter ethan jeremy harold keith christian roger noah gerald
carl terry sean austin arthur lawrence jesse dylan bryan joe jordan billy bruce albert willie
gabriel logan alan juan wayne roy ralph randy eugene vincent russell elijah louis bobby philip
johnny bradley mary patricia jennifer linda elizabeth barbara susan jessica sarah karen lisa
nancy betty margaret sandra ashley kimberly emily donna michelle carol amanda dorothy melissa
deborah stephanie rebecca sharon laura cynthia kathleen amy angela shirley anna brenda pamela
emma nicole helen samantha katherine christine debra rachel carolyn janet catherine maria
heather diane ruth julie olivia joyce virginia victoria kelly lauren christina joan evelyn
judith megan andrea cheryl hannah jacqueline martha gloria teresa ann sara madison frances
kathryn janice jean abigail alice julia judy sophia grace denise amber doris marilyn danielle
beverly isabella theresa diana natalie brittany charlotte marie kayla alexis lori luis carlos
miguel francisco antonio jesus manuel pedro fred howard stanley leonard ernest earl clarence
"""
_SURNAMES = """
smith johnson williams brown jones garcia miller davis rodriguez martinez hernandez lopez
gonzalez wilson anderson thomas taylor moore jackson martin lee perez thompson white harris
sanchez clark ramirez lewis robinson walker young allen king wright scott torres nguyen hill
flores green adams nelson baker hall rivera campbell mitchell carter roberts gomez phillips
evans turner diaz parker cruz edwards collins reyes stewart morris morales murphy cook rogers
gutierrez ortiz morgan cooper peterson bailey reed kelly howard ramos kim cox ward richardson
watson brooks chavez wood james bennett gray mendoza ruiz hughes price alvarez castillo sanders
patel myers long ross foster jimenez powell jenkins perry russell sullivan bell coleman butler
henderson barnes gonzales fisher vasquez simmons romero jordan patterson alexander hamilton
graham reynolds griffin wallace moreno west cole hayes bryant herrera gibson ellis tran medina
aguilar stevens murray ford castro marshall owens harrison fernandez mcdonald woods washington
kennedy wells vargas henry chen freeman webb tucker guzman burns crawford olson simpson porter
hunter gordon mendez silva shaw snyder mason dixon munoz hunt hicks holmes palmer wagner black
robertson boyd rose stone salazar fox warren mills meyer rice schmidt garza daniels ferguson
nichols stephens soto weaver ryan gardner payne grant dunn kelley spencer hawkins arnold pierce
hansen peters
"""

GIVEN = frozenset(_GIVEN.split())
SURNAMES = frozenset(_SURNAMES.split())
