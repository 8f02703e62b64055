// The plugin's own flags, and what it tells the agent of them: which must be able to read it.
#include <cstring>

#include "agent/slurm/registration.h"
#include "spank/messages.h"
#include "spank/options.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace siding;
  spank::Registration registration;
  registration.job = 1;
  const std::string text = fuzz::TextOf(data, size);
  // Lines, each a flag's number and its value.
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const auto flag = static_cast<size_t>(text[at] - '0');
    if (flag < std::size(spank::kFlags)) {
      const std::string value = text.substr(at + 1, end - at - 1);
      spank::Set(registration.options, spank::kFlags[flag].flag, value.c_str());
    }
    at = end + 1;
  }
  spank::Contradiction(registration.options);
  char message[spank::kMaxMessage];
  const size_t length = spank::FormatRegistration(registration, message, sizeof message);
  // The shim adds the line that the plugin cannot.
  const auto read = ParseRegistration(std::string(message, length) + spank::kRestarts + " 0\n");
  fuzz::Expect(read.ok() && read->task.options.methods == registration.options.methods &&
                   read->task.options.notice_us == registration.options.notice_us &&
                   read->task.options.append_files == registration.options.append_files &&
                   read->task.options.keep_connections == registration.options.keep_connections,
               "the agent reads what the plugin writes");
  return 0;
}
