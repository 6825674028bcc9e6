// The elementwise part of an LSTM cell, forward and backward, for several instruction sets (sdk/cpu_kernel.hpp).
// Torch-free. Gates are rows [4 * hidden] in the order input, forget, cell, output, as torch.nn.LSTM has them.
#pragma once

#include <cstdint>

namespace headroom {

// `rows` cells of `hidden` units.
template <class T>
struct CellForward {
  int64_t rows, hidden;
  T* gates;              // [rows, 4 * hidden]: what goes into the gates; then what comes out of them
  const T* cell_before;  // [rows, hidden]
  T *cell, *output;      // [rows, hidden]
};

template <class T>
struct CellBackward {
  int64_t rows, hidden;
  T* gates;  // [rows, 4 * hidden]: what came out of them; then the gradient of what went in
  const T *cell_before, *cell;
  const T* to_output;  // [rows, hidden]: the gradient of the cell's output
  T* to_cell;          // [rows, hidden]: of the cell after this step; then of the cell before it
};

void run_cells(const CellForward<float>& cells);
void run_cells(const CellForward<double>& cells);
void run_cells(const CellBackward<float>& cells);
void run_cells(const CellBackward<double>& cells);

}  // namespace headroom
