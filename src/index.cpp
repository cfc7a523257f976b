// SPDX-License-Identifier: Apache-2.0
// Shape checks of indexing operators.
#include "gable/ops/index.hpp"

namespace gable::detail {

void check_index_shape(Where where, const Shape& index, const Shape& x, int dim) {
  bool fits = index.size() == x.size();
  for (int d = 0; fits && d < x.size(); ++d) fits = d == dim || index[d] <= x[d];
  check(fits, where, "expected an index no larger than ", x,
        dim >= 0 ? " except in the indexed dimension" : "", ", got ", index);
}

}  // namespace gable::detail
