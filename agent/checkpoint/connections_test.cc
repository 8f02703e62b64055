#include "agent/checkpoint/connections.h"

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

TEST(ParseTcp, TakesEstablishedConnectionsOnly) {
  EXPECT_EQ(ParseTcp(kTable), std::vector<TcpConnection>{kServer});
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

}  // namespace
}  // namespace siding
