// Certificates as others show them, and the names in them.
#include "common/tls/certificates.h"

#include "common/tls/names.h"
#include "common/tls/openssl.h"
#include "common/tls/revocation.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace siding;
  const std::string text = fuzz::TextOf(data, size);
  const size_t half = std::min(text.find('\n'), text.size());
  const auto name = NameAmong({text.substr(0, half), half < text.size() ? text.substr(half + 1) : ""});
  if (name.ok())
    fuzz::Expect(*NameAmong({ToUri(*name)}) == *name, "a name that was written is read as the same");
  const Time now = FromMicros(1'700'000'000'000'000);
  VerifyChain(text, {text, ""}, Purpose::kClient, now).IgnoreError();
  VerifyChain(text, {text, text}, Purpose::kClient, now).IgnoreError();
  CheckRevocationLists(text, text).IgnoreError();
  ParseKey(text).status().IgnoreError();
  return 0;
}
