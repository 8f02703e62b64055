// What users and agents say of a job, as messages.
#include "controller/wire/wire.h"
#include "tests/fuzz/draw.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace siding;
  FuzzedDataProvider input(data, size);
  v1::JobSpec message;
  fuzz::Draw(input, message);
  const auto spec = FromProto(message);
  if (spec.ok()) fuzz::Expect(FromProto(ToProto(*spec)).ok(), "a job that was taken is taken again");
  if (const auto managed = ManagedFromProto(message); managed.ok()) ToProto(*managed);
  return 0;
}
