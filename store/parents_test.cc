#include "store/parents.h"

#include "gtest/gtest.h"

namespace siding::store {
namespace {

TEST(ParentFileTest, IsNamedAfterHowFarUpItIs) {
  EXPECT_EQ(NameOf({0, "pages-1.img"}), "pages-1.img");
  EXPECT_EQ(NameOf({2, "pages-1.img"}), "parent-2.pages-1.img");
  EXPECT_EQ(ParentFileOf("parent-2.pages-1.img"), (ParentFile{2, "pages-1.img"}));
}

TEST(ParentFileTest, WhatIsNamedOtherwiseIsTheImagesOwn) {
  for (const std::string name : {"pages-1.img", "parent", "parent-.x", "parent-0.x", "parent-02.x",
                                 "parent-1.", "parent-9.x", "parent--1.x", "parent-1x"})
    EXPECT_EQ(ParentFileOf(name), (ParentFile{0, name}));
}

}  // namespace
}  // namespace siding::store
