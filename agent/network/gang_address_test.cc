#include "agent/network/gang_address.h"

#include <sys/socket.h>

#include "agent/network/gang_network.h"
#include "gtest/gtest.h"

namespace siding {
namespace {

// Of a text with bytes of 0 in it.
template <size_t size>
std::string Raw(const char (&text)[size]) {
  return {text, size - 1};
}

TEST(GangAddress, FollowsFromTheRank) {
  EXPECT_EQ(GangAddress(0), "10.83.0.1");
  EXPECT_EQ(GangAddress(254), "10.83.0.255");
  EXPECT_EQ(GangAddress(255), "10.83.1.0");
  EXPECT_EQ(GangAddress(kLastGangRank), "10.83.255.254");
}

TEST(GangAddress, OfNoRankIsEmpty) {
  EXPECT_EQ(GangAddress(-1), "");
  EXPECT_EQ(GangAddress(kLastGangRank + 1), "");
}

TEST(GangMac, HasTheRankInItsLastBytes) { EXPECT_EQ(GangMac(0x1234), Raw("\x02\x53\x00\x00\x12\x34")); }

TEST(GangMac, LeadsBackToTheRank) {
  for (const int rank : {0, 1, 255, 256, kLastGangRank}) EXPECT_EQ(RankOfMac(GangMac(rank)), rank);
}

TEST(GangMac, OfAnotherMakeHasNoRank) {
  EXPECT_EQ(RankOfMac(Raw("\x02\x42\x00\x00\x00\x01")), std::nullopt);
  EXPECT_EQ(RankOfMac(Raw("\x02\x53\xff\xff\xff\xff")), std::nullopt);
  EXPECT_EQ(RankOfMac(""), std::nullopt);
}

TEST(ParseIp, KnowsBothKinds) {
  EXPECT_EQ(ParseIp("10.1.2.3").value(), (IpAddress{AF_INET, "\x0a\x01\x02\x03"}));
  EXPECT_EQ(ParseIp("2001:db8::7")->family, AF_INET6);
  EXPECT_EQ(ToText(ParseIp("2001:db8::7").value()), "2001:db8::7");
}

TEST(ParseIp, NamesWhatIsNoAddress) {
  for (const char* const text : {"", "node7", "10.1.2", "10.1.2.3:4789", "0.0.0.0", "::"}) {
    const absl::Status status = ParseIp(text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    EXPECT_NE(status.message().find("'" + std::string(text) + "'"), std::string::npos) << status;
  }
}

}  // namespace
}  // namespace siding
