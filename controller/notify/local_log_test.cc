#include "controller/notify/local_log.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <stop_token>
#include <thread>

#include "common/files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

using testing::HasSubstr;
using testing::Not;

v1::Event Placed() {
  v1::Event event;
  event.set_seq(12);
  event.set_at_us(1'796'000'000'000'000);
  event.set_job(3);
  event.set_kind("place");
  event.set_text("placed on n1");
  event.add_nodes("n1");
  event.add_nodes("n2");
  event.set_by("root");
  return event;
}

TEST(JournaldEntry, HasAFieldForEachThing) {
  EXPECT_EQ(JournaldEntry(Placed()),
            "MESSAGE=job 3 place: placed on n1\nPRIORITY=6\nSYSLOG_IDENTIFIER=siding-events\n"
            "SIDING_EVENT=place\nSIDING_SEQ=12\nSIDING_AT=2026-11-30T00:53:20.000Z\nSIDING_JOB=3\nSIDING_"
            "NODES=n1,n2\nSIDING_BY=root\n");
}

// A job's name is its user's.
TEST(JournaldEntry, NoTextMakesAnotherField) {
  v1::Event event = Placed();
  event.set_text("named 'x\n_UID=0\nPRIORITY=0'");
  EXPECT_THAT(JournaldEntry(event), Not(HasSubstr("\n_UID=0")));
}

TEST(SyslogLine, HasTheFieldsInItsText) {
  EXPECT_EQ(SyslogLine(Placed()),
            "<30>siding-events: event=place seq=12 at=2026-11-30T00:53:20.000Z job=3 nodes=n1,n2 by=root "
            "text=\"placed on n1\"");
}

TEST(SyslogLine, NoTextMakesAnotherLineOrField) {
  v1::Event event = Placed();
  event.set_by("eve job=1\n\"");
  event.set_text("a\nb\\\" by=root");
  EXPECT_THAT(SyslogLine(event), HasSubstr("by=\"eve job=1 '\" text=\"a b/' by=root\""));
}

TEST(SyslogLine, AGangOfThousandsFitsIntoADatagram) {
  v1::Event event = Placed();
  for (int i = 0; i < 10'000; ++i) event.add_nodes("a-node-with-a-rather-long-name");
  event.set_text(std::string(1 << 20, 'x'));
  EXPECT_LT(SyslogLine(event).size(), 64u << 10);
  EXPECT_LT(JournaldEntry(event).size(), 64u << 10);
}

class LocalLogTest : public testing::Test {
 protected:
  LocalLogTest() { EXPECT_NE(mkdtemp(folder_.data()), nullptr); }
  ~LocalLogTest() override { std::filesystem::remove_all(folder_); }
  std::string socket_name() const { return folder_ + "/log"; }
  UniqueFd Listen() const {
    UniqueFd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    socket_name().copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return fd;
  }
  std::string folder_ = "/tmp/siding-log-XXXXXX";
};

TEST_F(LocalLogTest, EachEventIsADatagram) {
  const UniqueFd log = Listen();
  const auto told = NewLocalLog(EventLogKind::kJournald, socket_name())->Tell({Placed(), Placed()}, {});
  ASSERT_EQ(told.why, absl::OkStatus());
  EXPECT_EQ(told.count, 2u);
  for (int i = 0; i < 2; ++i) {
    std::array<char, 4096> read{};
    const ssize_t size = recv(log.get(), read.data(), read.size(), MSG_DONTWAIT);
    EXPECT_EQ(std::string(read.data(), std::max<ssize_t>(size, 0)), JournaldEntry(Placed()));
  }
}

TEST_F(LocalLogTest, WhereNoLogListensItIsAnError) {
  EXPECT_THAT(
      std::string(NewLocalLog(EventLogKind::kSyslog, socket_name())->Tell({Placed()}, {}).why.message()),
      HasSubstr(socket_name()));
}

TEST_F(LocalLogTest, OneThatReadsSlowlyHasThemAll) {
  const UniqueFd log = Listen();
  const std::vector<v1::Event> many(3'000, Placed());
  std::jthread reader([&](const std::stop_token& stop) {
    std::array<char, 4096> read{};
    while (!stop.stop_requested()) recv(log.get(), read.data(), read.size(), MSG_DONTWAIT);
  });
  EXPECT_EQ(NewLocalLog(EventLogKind::kSyslog, socket_name())->Tell(many, {}).count, many.size());
}

TEST_F(LocalLogTest, OneThatDoesNotReadIsNotWaitedForWhenItIsToStop) {
  const UniqueFd log = Listen();
  const std::vector<v1::Event> many(10'000, Placed());
  std::stop_source stop;
  stop.request_stop();
  const auto told = NewLocalLog(EventLogKind::kSyslog, socket_name())->Tell(many, stop.get_token());
  EXPECT_TRUE(absl::IsCancelled(told.why));
  EXPECT_GT(told.count, 0u) << "what it had room for";
  EXPECT_LT(told.count, many.size());
}

}  // namespace
}  // namespace siding
