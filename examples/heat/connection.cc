#include "examples/heat/connection.h"

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>

#include "examples/heat/fnv.h"

namespace heat {
namespace {

constexpr uint32_t kMagic = 0x54414548;  // "HEAT"

// In the byte order of the machine: ranks that save and move their memory are on machines of one kind anyway.
struct Header {
  uint32_t magic;
  What what;
  int64_t number;
  uint64_t count;     // of values
  uint64_t checksum;  // of the values
};
static_assert(sizeof(Header) == 32, "no gaps between the fields: all bytes are sent");

uint64_t Checksum(const std::vector<double>& values) {
  return Fnv1a(values.data(), values.size() * sizeof(double));
}

std::string Text(What what) {
  switch (what) {
    case What::kHello:
      return "hello";
    case What::kUp:
      return "rows upwards";
    case What::kDown:
      return "rows downwards";
    case What::kBlock:
      return "a block";
  }
  return "what nobody sends";
}

std::string Text(What what, int64_t number, uint64_t count) {
  return Text(what) + " (number " + std::to_string(number) + ", " + std::to_string(count) + " values)";
}

}  // namespace

void Connection::Check(int error) const {
  if (error == ECONNRESET || error == EPIPE) throw std::runtime_error(peer_ + " has hung up");
  if (error != 0) throw std::runtime_error(peer_ + ": " + std::generic_category().message(error));
}

void Connection::Send(What what, int64_t number, const std::vector<double>& values) {
  const Header header = {kMagic, what, number, values.size(), Checksum(values)};
  std::vector<char> message(sizeof header + values.size() * sizeof(double));
  std::memcpy(message.data(), &header, sizeof header);
  if (!values.empty())
    std::memcpy(message.data() + sizeof header, values.data(), message.size() - sizeof header);
  Check(socket_.Send(message.data(), message.size()));
}

std::vector<double> Connection::Receive(What what, int64_t number, size_t count) {
  Header header = {};
  Check(socket_.Receive(&header, sizeof header));
  const auto refuse = [&](const std::string& sent) {
    throw std::runtime_error(peer_ + " sent " + sent + ", expected " + Text(what, number, count) +
                             ": bytes were lost or came twice, or it is not of this run");
  };
  if (header.magic != kMagic) refuse("something that is no message");
  const std::string sent = Text(header.what, header.number, header.count);
  if (header.what != what || header.number != number || header.count != count) refuse(sent);
  std::vector<double> values(count);
  Check(socket_.Receive(values.data(), count * sizeof(double)));
  if (header.checksum != Checksum(values)) refuse(sent + " with a wrong checksum");
  return values;
}

}  // namespace heat
