// The files of JSON in a task's folder. The first byte says which it is.
#include "agent/task/json_file.h"
#include "agent/task/shim.pb.h"
#include "agent/task/task_record.pb.h"
#include "tests/fuzz/input.h"

namespace {

template <class Message>
void Read(const std::string& text) {
  const auto message = siding::FromJson<Message>(text);
  if (message.ok()) siding::ToJson(*message).status().IgnoreError();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace siding::agent;
  if (size == 0) return 0;
  const std::string text = siding::fuzz::TextOf(data + 1, size - 1);
  switch (data[0]) {
    case 't':
      Read<TaskRecord>(text);
      break;
    case 'q':
      Read<ShimRequest>(text);
      break;
    case 'p':
      Read<ProcessRef>(text);
      break;
    case 'r':
      Read<ShimRunning>(text);
      break;
    case 'f':
      Read<ShimFailed>(text);
      break;
    case 'e':
      Read<ShimExit>(text);
      break;
  }
  return 0;
}
