#include "agent/checkpoint/connections.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

constexpr char kTable[] =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 17 1 0 100 "
    "0\n"
    "   1: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 18 1 0 20 "
    "4\n";

const TcpConnection kServer{"0100007F:1F90", "0100007F:C350", 18};
const TcpConnection kClient{"0100007F:C350", "0100007F:1F90", 19};
const TcpConnection kOutside{"0500000A:C351", "0600000A:01BB", 20};

TEST(ParseTcp, LeavesOutSocketsThatListen) {
  EXPECT_EQ(ParseTcp(kTable), std::vector<TcpConnection>{kServer});
}

TEST(ParseTcp, TakesConnectionsThatTheOtherEndHasClosed) {
  EXPECT_EQ(ParseTcp("head\n 0: 0500000A:C351 0600000A:01BB 08 0:0 0:0 0 0 0 20 1\n"),
            std::vector<TcpConnection>{kOutside});
}

TEST(ParseTcp, V4InsideV6IsV4) {
  const auto found = ParseTcp(
      "head\n 0: 0000000000000000FFFF00000100007F:1F90 0000000000000000FFFF00000100007F:C350 01 0:0 0:0 0 0 "
      "0 18 1\n");
  EXPECT_EQ(found, std::vector<TcpConnection>{kServer});
}

TEST(StayInside, BothEndsOnTheLoopbackDeviceDo) { EXPECT_TRUE(StayInside({kServer, kClient}, {18, 19})); }

TEST(StayInside, OneWhoseOtherEndIsSomebodyElsesDoesNot) {
  EXPECT_FALSE(StayInside({kServer, kClient}, {18}));
}

TEST(StayInside, OneToAnotherMachineDoesNot) { EXPECT_FALSE(StayInside({kOutside}, {20})); }

TEST(StayInside, OthersConnectionsDoNotMatter) { EXPECT_TRUE(StayInside({kOutside}, {18})); }

TEST(LeadsOutside, OneToAnotherMachineIsNamed) { EXPECT_EQ(LeadsOutside({kOutside}, {20}), "10.0.0.6:443"); }

// It may be about to be accepted.
TEST(LeadsOutside, OneOnTheLoopbackDeviceDoesNotWhoeverHasItsOtherEnd) {
  EXPECT_EQ(LeadsOutside({kServer, kClient}, {18}), "");
}

TEST(LeadsOutside, OthersConnectionsDoNotMatter) { EXPECT_EQ(LeadsOutside({kOutside}, {18}), ""); }

TEST(LeadsOutside, WhatIsNoAddressDoesNot) { EXPECT_EQ(LeadsOutside({{"x", "y", 20}}, {20}), ""); }

// As in /proc/PID/net/udp.
std::string Socket(const std::string& local, const std::string& state, int inode) {
  return absl::StrCat("head\n 0: ", local, " 00000000:0000 ", state, " 0:0 0:0 0 0 0 ", inode, " 1\n");
}

TEST(BoundToAnAddress, OneThatListensAtTheContainersAddressIsNamed) {
  EXPECT_EQ(BoundToAnAddress(Socket("0507620A:1F90", "0A", 17), {17}, true),
            std::vector<std::string>{"10.98.7.5:8080"});
}

TEST(BoundToAnAddress, SoIsOneOfIPv6) {
  EXPECT_EQ(BoundToAnAddress(Socket("000080FE000000000000000001000000:0035", "07", 17), {17}, false),
            std::vector<std::string>{"[fe80::1]:53"});
}

TEST(BoundToAnAddress, AConnectionOfUdpIsBoundAsWell) {
  EXPECT_EQ(BoundToAnAddress(Socket("0507620A:C351", "01", 17), {17}, false),
            std::vector<std::string>{"10.98.7.5:50001"});
}

TEST(BoundToAnAddress, ConnectionsOfTcpAreNotLookedAt) {
  EXPECT_TRUE(BoundToAnAddress(Socket("0507620A:C351", "01", 17), {17}, true).empty());
}

TEST(BoundToAnAddress, AnyAddressAndLoopbackAreThereInEachContainer) {
  for (const char* address :
       {"00000000:1F90", "0100007F:1F90", "0501007F:1F90", "00000000000000000000000000000000:1F90",
        "00000000000000000000000001000000:1F90", "0000000000000000FFFF000000000000:1F90",
        "0000000000000000FFFF00000100007F:1F90"})
    EXPECT_TRUE(BoundToAnAddress(Socket(address, "0A", 17), {17}, true).empty()) << address;
}

TEST(BoundToAnAddress, OthersSocketsDoNotMatter) {
  EXPECT_TRUE(BoundToAnAddress(Socket("0507620A:1F90", "0A", 17), {18}, true).empty());
}

TEST(BoundToAnAddress, WhatIsNoAddressIsNone) {
  for (const char* local : {"", ":", "x", "0507620A", "0507620Z:1F90", "05:1F90"})
    EXPECT_TRUE(BoundToAnAddress(Socket(local, "0A", 17), {17}, true).empty()) << local;
}

}  // namespace
}  // namespace siding
