// SPDX-License-Identifier: Apache-2.0
// Tables of calls that must be refused: the exception's type, parts of its message, and that
// nothing was written.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <typeinfo>
#include <vector>

#include "gable/ops/elementwise.hpp"
#include "gable/tensor/tensor.hpp"

namespace gable::misuse {

/// What every call may touch; values are compared after each call.
struct Fixture {
  Tensor<float> x = arange<float>(6).view({2, 3});
  Tensor<float> y = arange<float>(4);
  Tensor<float> m = arange<float>(12).view({3, 4});
  Tensor<float> image = arange<float>(100).view({1, 4, 5, 5});
  Tensor<float> filter = ones<float>({2, 4, 3, 3});
  Tensor<int32_t> ints = arange<int32_t>(3);
  Tensor<float> undefined;

  [[nodiscard]] std::vector<std::vector<float>> snapshot() const {
    return {x.to_vector(),     y.to_vector(),      m.to_vector(),
            image.to_vector(), filter.to_vector(), ints.to<float>().to_vector()};
  }
};

struct Misuse {
  const char* what;
  std::function<void(const Fixture&)> call;
  const std::type_info* type;
  std::vector<const char*> parts;  ///< of the message; the first is "[op]"
};

inline void run(const std::vector<Misuse>& table) {
  const Fixture f;
  const auto before = f.snapshot();
  for (const Misuse& m : table) {
    SCOPED_TRACE(m.what);
    try {
      m.call(f);
      ADD_FAILURE() << "nothing thrown";
    } catch (const Error& e) {
      const std::string text = e.what();
      EXPECT_EQ(typeid(e).name(), m.type->name()) << text;
      for (const char* part : m.parts)
        EXPECT_NE(text.find(part), std::string::npos) << "no \"" << part << "\" in: " << text;
      EXPECT_NE(text.find("] expected "), std::string::npos) << text;
      EXPECT_NE(text.find(", got "), std::string::npos) << text;
      const bool lists = e.op() == "load_state_dict";  // lists what is missing
      EXPECT_TRUE(lists || text.find('\n') == std::string::npos) << "one line: " << text;
      EXPECT_FALSE(e.op().empty());
      EXPECT_EQ(text.find("[" + e.op() + "] " + e.message()), 0U) << text;
    } catch (const std::exception& e) {
      ADD_FAILURE() << "not a gable::Error: " << e.what();
    }
    EXPECT_EQ(f.snapshot(), before) << "something was written";
  }
  // Everything is still usable.
  EXPECT_EQ(add(f.x, f.x).to_vector(), (std::vector<float>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(f.image.select(1, 3).numel(), 25);
}

}  // namespace gable::misuse
