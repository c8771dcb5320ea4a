export default class uPlot {
  constructor(options: any, data: any, target: Element);
  setData(data: any, resetScales?: boolean): void;
  setSize(size: { width: number; height: number }): void;
  destroy(): void;
  cursor: any;
  legend: any;
  data: any;
}
