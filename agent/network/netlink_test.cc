#include "agent/network/netlink.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include "gtest/gtest.h"

namespace siding {
namespace {

TEST(Netlink, AttributesAreReadAsTheyWereWritten) {
  const std::string bytes =
      NumberAttribute(1, 7) + TextAttribute(2, "x") + NestAttribute(3, NumberAttribute(4, 9));
  NetlinkAttributes attributes = ParseAttributes(bytes);
  EXPECT_EQ(ValueOf<uint32_t>(attributes, 1), 7);
  EXPECT_EQ(attributes[2], absl::string_view("x\0", 2));
  EXPECT_EQ(ValueOf<uint32_t>(ParseAttributes(attributes[3]), 4), 9);
}

TEST(Netlink, AValueOfAnotherSizeIsNone) {
  const std::string bytes = NumberAttribute(1, 7);
  EXPECT_EQ(ValueOf<uint16_t>(ParseAttributes(bytes), 1), std::nullopt);
  EXPECT_EQ(ValueOf<uint32_t>(ParseAttributes(bytes), 2), std::nullopt);
}

TEST(Netlink, WhatIsCutOffEndsTheAttributes) {
  const std::string whole = NumberAttribute(1, 7) + NumberAttribute(2, 8);
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_EQ(ParseAttributes(absl::string_view(whole).substr(0, size)).size(), size / 8) << size;
}

TEST(Netlink, TheKernelsErrorNamesWhatWasAsked) {
  const absl::Status status = TellKernel(
      NETLINK_ROUTE, NetlinkMessage(RTM_GETLINK, NLM_F_ACK, BytesOf(ifinfomsg{.ifi_index = 1 << 30}), ""),
      "look at the link x");
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_EQ(status.message(), "look at the link x: No such device");
}

}  // namespace
}  // namespace siding
