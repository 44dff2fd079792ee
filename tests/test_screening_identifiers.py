"""Direct identifiers by name, label, format and contents."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keyhole.screening.identifiers import KINDS, recognise, words

SECRET = "911-22-7788"

IDENTIFIERS = {
    "name": "firstName LNAME patient_nm last_nm surname mothersMaidenName veteran/fullName/first "
    "nextOfKin/fullName spouseName careExpenses/childName insurancePolicyHolderName "
    "school/contact/fullName/last",
    "employer name": "employerName previousEmployers/name",
    "ssn": "ssn SSN scrssn PT_SSN veteranSocialSecurityNumber sSn ssn/lastFour "
    "taxpayerIdentificationNumber",
    "phone": "homePhone phone_number telephone phone/number cellPhoneNumber",
    "fax": "faxNumber fax",
    "email": "email e_mail emailAddress spouse/email",
    "address": "street veteranAddress/street2 addressLine1 mailing_address apartmentNumber",
    "account number": "bankAccountNumber acct_no iban creditCardNumber vaLoanNumber",
    "routing number": "bankRoutingNumber routing_no",
    "policy number": "policyNumber HICN mbi medicareClaimNumber subscriberId insuranceGroupCode",
    "medical record number": "MRN medicalRecordNumber patientId PatientICN",
    "file number": "vaFileNumber caseNumber caseid claimno serviceNumber",
    "record number": "SERIALNO respondent_id id",
    "licence number": "driversLicenseNumber passportNumber",
    "vehicle": "VIN licensePlate",
    "device": "deviceId imei macAddress",
    "url": "url personalWebsite",
    "ip address": "ipAddress ip",
    "biometric": "fingerprint voicePrint",
    "photo": "photo facePhotograph",
    "signature": "signature veteranSignature",
    "user name": "username userId screenName",
    "coordinates": "latitude homeGps",
}
NOT_IDENTIFIERS = """
    stateName nameOfSchool schoolInformation/name countryName country city cityOfBirth zip zipCode
    gender sex age maritalStatus veteranAddress/city veteranAddress/state attachments/name
    bankName bankAccountType hasPhone isEmailVerified signatureDate dateSigned numberOfDependents
    annualSocialSecurityPayments receivesSocialSecurity newSchool/address/street relationship
    casein servicenow profile caseload fileType
    creditCardBills/minimumPayment race1 income treatmentCenterName filename diagnosisCode
"""


@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, name) for kind, names in IDENTIFIERS.items() for name in names.split()],
)
def test_a_direct_identifier_is_recognised_by_its_name(kind: str, name: str) -> None:
    found = recognise(name)
    assert found is not None
    assert found.kind == kind
    assert 0.5 <= found.confidence <= 1
    assert found.reason.startswith("its name has ")


@pytest.mark.parametrize("name", NOT_IDENTIFIERS.split())
def test_what_tells_a_place_a_day_or_a_thing_is_none(name: str) -> None:
    assert recognise(name) is None


@pytest.mark.parametrize(
    ("label", "kind"),
    [
        ("What is your first name?", "name"),
        ("Name of spouse", "name"),
        ("What is the name of your doctor?", "name"),
        ("Name of employer", "employer name"),
        ("Name of school", None),
        ("Name of the country", None),
        ("Is your name on the lease?", None),
        ("In what state do you live?", None),
        ("Do you own a phone?", None),
        ("Date of birth", None),
        ("Street address", "address"),
        ("Social Security number", "ssn"),
    ],
)
def test_a_label_speaks_where_the_name_is_mute(label: str, kind: str | None) -> None:
    found = recognise("q17", label)
    assert (found.kind if found else None) == kind


@pytest.mark.parametrize(
    ("pattern", "kind"),
    [
        (r"^\d{3}-?\d{2}-?\d{4}$", "ssn"),
        ("email", "email"),
        (r"^[_A-Za-z0-9-]+(\.[_A-Za-z0-9-]+)*@[A-Za-z0-9-]+$", "email"),
        ("ipv4", "ip address"),
        ("uri", "url"),
        (r"^(?!\s)[^<>%$#@!^&*]+$", None),  # an at sign that is forbidden
        (r"^\d{5}(-\d{4})?$", None),
        (r"^[0-9]{9}$", None),  # a routing number as well as an SSN
    ],
)
def test_a_format_speaks_where_words_do_not(pattern: str, kind: str | None) -> None:
    found = recognise("q17", pattern=pattern)
    assert (found.kind if found else None) == kind


def test_contents_are_recognised_and_never_shown() -> None:
    values = ["212-22-7788", "313-45-6789", None, ""]
    found = recognise("q17", values=values)
    assert found is not None
    assert found.kind == "ssn"
    assert not any(value in str(found) for value in values if value)
    assert recognise("q17", values=["212-22-7788", "a", "b"]) is None
    assert recognise("q17", values=[]) is None
    assert recognise("q17", values=["someone@example.org"] * 3).kind == "email"  # type: ignore[union-attr]


def test_each_kind_is_an_item_of_safe_harbor_and_its_patterns_are_sound() -> None:
    for kind in KINDS:
        assert re.fullmatch("[A-R]", kind.safe_harbor)
        for pattern in [
            *(one for one, _ in (*kind.words, *kind.formats)),
            kind.unless,
            kind.contents,
        ]:
            re.compile(pattern)
        assert all(0.5 <= confidence <= 1 for _, confidence in kind.words)


def test_words_of_all_spellings() -> None:
    assert words("zip_code-2") == ("zip", "code", "2")
    assert words("HTTPServerURL") == ("http", "server", "url")
    assert words("Straße großerName") == ("straße", "großer", "name")
    assert words("ÄRZTE_NR") == ("ärzte", "nr")
    assert words("") == ()


@given(st.text(max_size=300), st.text(max_size=300), st.text(max_size=300))
def test_any_text_is_taken(name: str, label: str, pattern: str) -> None:
    found = recognise(name, label, pattern, values=[name, label])
    assert found is None or 0 < found.confidence <= 1


def test_long_texts_come_to_an_end() -> None:
    for text in ("a" * 10**6, "name " * 10**5, "/" * 10**6, "{3}-{2}" * 10**5, "1.1." * 10**5):
        found = recognise(text, text, text, values=[text])
        assert found is None or 0 < found.confidence <= 1
