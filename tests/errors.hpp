// SPDX-License-Identifier: Apache-2.0
// Texts of exceptions in tests.
#pragma once

#include <gtest/gtest.h>

#include <string>

/// what() of the E that f throws.
template <class E, class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return "nothing thrown";
}

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)
