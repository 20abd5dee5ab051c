// One table of the unit: a memory of one port, written or read each clock, read data a clock later.
//
// Invariant: while nothing is written, `read_data` is the word at the address of the clock before.
// Nothing resets the contents. With ZeroAtPowerUp they are zero when the device starts, else anything.

module rtmmu_ram #(
    parameter integer AddressWidth = 12,
    parameter integer DataWidth = 12,
    parameter integer ZeroAtPowerUp = 0
) (
    input  logic                    clk,
    input  logic [AddressWidth-1:0] address,
    input  logic                    write,
    input  logic [   DataWidth-1:0] write_data,
    output logic [   DataWidth-1:0] read_data
);
  (* ram_style = "block" *)
  logic [DataWidth-1:0] words[2**AddressWidth];

  generate
    if (ZeroAtPowerUp != 0) begin : gen_cleared
      initial for (int i = 0; i < 2 ** AddressWidth; i++) words[i] = '0;
    end else begin : gen_anything
`ifdef RTMMU_GARBAGE
      // What Lemma 1 allows, for simulations.
      initial for (int i = 0; i < 2 ** AddressWidth; i++) words[i] = DataWidth'($urandom);
`endif
    end
  endgenerate

  always_ff @(posedge clk)
    if (write) words[address] <= write_data;
    else read_data <= words[address];
endmodule
