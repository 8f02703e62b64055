#include "common/gzip.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace siding {
namespace {

std::string Unpacked(const std::string& packed, size_t most) {
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  std::string bytes(most, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_out = static_cast<uInt>(bytes.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  bytes.resize(stream.total_out);
  inflateEnd(&stream);
  return bytes;
}

std::string OfChance(size_t size) {
  unsigned int state = 1;
  std::string bytes;
  for (size_t i = 0; i < size; ++i) bytes.push_back(static_cast<char>(rand_r(&state) >> 8));
  return bytes;
}

TEST(GzipTest, WhatIsUnpackedIsWhatWasPacked) {
  for (const std::string& bytes :
       {std::string(), std::string("a"), std::string(1'000'000, 'x'), OfChance(1'000'000)})
    EXPECT_EQ(Unpacked(Gzip(bytes), bytes.size() + 1), bytes);
}
TEST(GzipTest, AListBecomesShort) {
  std::string list;
  for (int i = 0; i < 1000; ++i)
    list += R"({"id":")" + std::to_string(i) + R"(","state":"running","preemptions":0})";
  EXPECT_LT(Gzip(list).size(), list.size() / 8);
}
// What is counted of a body is its size.
TEST(GzipTest, WhatIsPackedHasNoMoreMemoryThanItNeeds) {
  const std::string packed = Gzip(std::string(1'000'000, 'x'));
  EXPECT_LT(packed.capacity(), 2 * packed.size());
}

}  // namespace
}  // namespace siding
