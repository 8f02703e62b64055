#include "common/packets.h"

#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "gtest/gtest.h"

namespace siding {
namespace {

struct Pair {
  Pair() {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    a.Reset(fds[0]);
    b.Reset(fds[1]);
  }
  UniqueFd a, b;
};

TEST(Packets, ArriveOneByOne) {
  Pair pair;
  SendPacket(pair.a.get(), "one");
  SendPacket(pair.a.get(), "two");
  EXPECT_EQ(*ReceivePacket(pair.b.get(), 3), "one");
  EXPECT_EQ(*ReceivePacket(pair.b.get(), 3), "two");
}

TEST(Packets, OneThatIsTooLongIsRefused) {
  Pair pair;
  SendPacket(pair.a.get(), "four");
  EXPECT_TRUE(absl::IsInvalidArgument(ReceivePacket(pair.b.get(), 3).status()));
}

TEST(Packets, SilenceAndTheEndAreToldApart) {
  Pair pair;
  EXPECT_TRUE(absl::IsDeadlineExceeded(ReceivePacket(pair.b.get(), 3).status()));
  pair.a.Reset();
  EXPECT_TRUE(absl::IsUnavailable(ReceivePacket(pair.b.get(), 3).status()));
  SendPacket(pair.b.get(), "to nobody");
}

TEST(Packets, ThePeersUserIsKnown) {
  Pair pair;
  EXPECT_EQ(*UserOfPeer(pair.a.get()), geteuid());
}

TEST(Packets, TheSocketHasTheModeItIsToHave) {
  char name[] = "/tmp/siding-packets-XXXXXX";
  const std::string folder = mkdtemp(name);
  const auto listening = ListenForPackets(folder + "/run/socket", 0666);
  ASSERT_TRUE(listening.ok()) << listening.status();
  struct stat about = {};
  EXPECT_EQ(stat((folder + "/run/socket").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0666u);
  std::filesystem::remove_all(folder);
}

TEST(Packets, WhoeverSeesTheSocketCanConnect) {
  char name[] = "/tmp/siding-packets-XXXXXX";
  const std::string folder = mkdtemp(name);
  const UniqueFd watch(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  ASSERT_GE(inotify_add_watch(watch.get(), folder.c_str(), IN_CREATE | IN_MOVED_TO), 0);
  const auto listening = ListenForPackets(folder + "/socket", 0600);
  ASSERT_TRUE(listening.ok()) << listening.status();
  // The name came with a socket that was ready, rather than with one that was only bound.
  std::vector<uint32_t> how;
  alignas(inotify_event) char events[4096];
  const ssize_t size = read(watch.get(), events, sizeof events);
  for (ssize_t at = 0; at < size;) {
    const auto* event = reinterpret_cast<const inotify_event*>(events + at);
    if (std::string(event->name) == "socket") how.push_back(event->mask);
    at += static_cast<ssize_t>(sizeof *event + event->len);
  }
  EXPECT_EQ(how, std::vector<uint32_t>{IN_MOVED_TO});
  std::filesystem::remove_all(folder);
}

TEST(ParsePacket, LinesAreKeysAndValuesInTheirOrder) {
  const auto lines = ParsePacket("hello 1\nb x y\na\nb \n", "hello", 1);
  ASSERT_TRUE(lines.ok()) << lines.status();
  EXPECT_EQ(*lines, (KeysAndValues{{"b", "x y"}, {"a", ""}, {"b", ""}}));
}

TEST(ParsePacket, AnotherVersionIsToldFromAnotherMessage) {
  EXPECT_TRUE(absl::IsUnimplemented(ParsePacket("hello 2\n", "hello", 1).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ParsePacket("goodbye 1\n", "hello", 1).status()));
}

TEST(ParsePacket, WhatIsCutOffIsRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(ParsePacket("hello 1\nkey val", "hello", 1).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(ParsePacket("hello 1", "hello", 1).status()));
}

TEST(OneLine, IsOneAndNotTooLong) {
  EXPECT_EQ(OneLine(absl::InternalError("a\nb"), 4), "a b");
  EXPECT_EQ(OneLine(absl::InternalError("abcdef"), 4), "abc");
}

}  // namespace
}  // namespace siding
